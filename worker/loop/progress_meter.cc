#include "worker/loop/progress_meter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace lockstep::worker {

ProgressMeter::ProgressMeter(const Clock& clock)
    : clock_(clock), since_(clock.Now()) {
  progress_.activity = "starts";
}

void ProgressMeter::Begin(const std::string& activity, bool waiting) {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  if (waiting_) progress_.waiting += now - since_;
  progress_.activity = activity;
  waiting_ = waiting;
  since_ = now;
}

void ProgressMeter::Computed(int64_t local_step, double loss,
                             int64_t examples) {
  MutexLock lock(mutex_);
  ++progress_.passes;
  progress_.local_step = local_step;
  progress_.loss = loss;
  progress_.examples += examples;
  ++progress_.computed;
}

void ProgressMeter::NonFinite(int64_t elements) {
  MutexLock lock(mutex_);
  progress_.non_finite += elements;
}

absl::Status ProgressMeter::Report(const NamedFigure& figure) {
  MutexLock lock(mutex_);
  std::vector<NamedFigure> figures = progress_.figures;
  const auto same = std::find_if(
      figures.begin(), figures.end(),
      [&](const NamedFigure& each) { return each.name == figure.name; });
  if (same == figures.end()) {
    figures.push_back(figure);
  } else {
    *same = figure;
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckFigures(figures));
  progress_.figures = std::move(figures);
  return absl::OkStatus();
}

void ProgressMeter::Dropped() {
  MutexLock lock(mutex_);
  ++progress_.passes;
  ++progress_.stale;
}

void ProgressMeter::Accepted() {
  MutexLock lock(mutex_);
  ++progress_.accepted;
}

void ProgressMeter::Stale() {
  MutexLock lock(mutex_);
  ++progress_.stale;
}

void ProgressMeter::Duplicates(int64_t parts) {
  MutexLock lock(mutex_);
  progress_.duplicate += parts;
}

Progress ProgressMeter::Get() const {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  Progress progress = progress_;
  progress.activity_age = now - since_;
  if (waiting_) progress.waiting += progress.activity_age;
  return progress;
}

}  // namespace lockstep::worker
