#include "worker/loop/progress_meter.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

namespace {

constexpr char kStarts[] = "starts";

bool IsWait(Phase phase) {
  return phase != Phase::kCompute && phase != Phase::kOther;
}

ActivityKind KindOf(Phase phase) {
  if (phase == Phase::kCompute) return ActivityKind::kComputes;
  return IsWait(phase) ? ActivityKind::kWaits : ActivityKind::kOther;
}

Phase UseOf(SpanKind phase) {
  switch (phase) {
    case SpanKind::kForward:
    case SpanKind::kBackward:
    case SpanKind::kAnnounce:
      return Phase::kCompute;
    case SpanKind::kPull:
      return Phase::kPull;
    case SpanKind::kPush:
      return Phase::kPush;
    default:
      return Phase::kWait;
  }
}

std::string TextOf(const Span& phase) {
  if (phase.part >= 0 && phase.kind == SpanKind::kForward) {
    return absl::StrCat("computes micro-batch ", phase.part, " of step ",
                        phase.step + 1);
  }
  switch (phase.kind) {
    case SpanKind::kToken:
      return absl::StrCat("waits for a token after step ", phase.step + 1);
    case SpanKind::kPull:
      return phase.step < 0 ? "pulls" : absl::StrCat("pulls step ", phase.step);
    case SpanKind::kAnnounce:
      return absl::StrCat("announces step ", phase.step + 1);
    case SpanKind::kPush:
      return absl::StrCat("pushes step ", phase.step + 1);
    case SpanKind::kAwaitValues:
      return absl::StrCat("waits for values of step ", phase.step);
    default:
      return absl::StrCat("computes step ", phase.step + 1);
  }
}

}  // namespace

absl::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kWait:
      return "wait";
    case Phase::kPull:
      return "pull";
    case Phase::kCompute:
      return "compute";
    case Phase::kPush:
      return "push";
    case Phase::kOther:
      return "other";
  }
  return "";
}

ProgressMeter::ProgressMeter(const Clock& clock, SpanRecorder* spans,
                             std::function<void(const PhaseTimes&)> on_pass)
    : clock_(clock),
      spans_(spans),
      on_pass_(std::move(on_pass)),
      since_(clock.Now()),
      counted_(since_) {
  progress_.activity = kStarts;
}

void ProgressMeter::Settle(absl::Time now) {
  // Adds the time since the last call to the present use, so that no moment
  // counts twice or not at all.
  const absl::Duration time = now - counted_;
  if (IsWait(use_)) progress_.waiting += time;
  if (use_ == Phase::kCompute) progress_.pass_age += time;
  if (phase_.has_value() && phase_->kind == SpanKind::kAnnounce) {
    announcing_ += time;
  }
  if (use_ == Phase::kPush) progress_.pushes_time += time;
  times_[static_cast<size_t>(use_)] += time;
  counted_ = now;
}

void ProgressMeter::EndPass() {
  if (on_pass_ == nullptr) return;
  PhaseTimes times;
  {
    const absl::Time now = clock_.Now();
    MutexLock lock(mutex_);
    Settle(now);
    times = std::exchange(times_, {});
  }
  // Outside the lock: the callback may take other locks, or call Get().
  on_pass_(times);
}

void ProgressMeter::EndComputing(bool dropped) {
  Settle(clock_.Now());
  progress_.pass_times.push_back({progress_.pass_age, dropped});
  progress_.pass_age = absl::ZeroDuration();
  // Only the newest are reported.
  if (progress_.pass_times.size() <= Progress::kPassTimes) return;
  progress_.pass_times.erase(progress_.pass_times.begin());
}

void ProgressMeter::End(absl::Time now) {
  Settle(now);
  since_ = now;
  // Activities without a SpanKind are not traced.
  if (spans_ == nullptr || !phase_.has_value()) return;
  phase_->end = absl::ToUnixNanos(now);
  spans_->Add(*phase_);
}

void ProgressMeter::Begin(const std::string& activity, Phase phase,
                          std::function<std::string()> more) {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  End(now);
  phase_.reset();
  progress_.activity = activity;
  more_ = std::move(more);
  use_ = phase;
}

void ProgressMeter::Begin(SpanKind phase, int64_t step, int64_t attempt,
                          int micro_batch) {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  End(now);
  phase_ = Span{.kind = phase,
                .attempt = SpanAttempt(attempt),
                .part = micro_batch,
                .step = step,
                .begin = absl::ToUnixNanos(now)};
  if (step >= 0) step_ = step;
  use_ = UseOf(phase);
  if (use_ == Phase::kPush) ++progress_.pushes;
}

void ProgressMeter::Computed(int64_t local_step, double loss, int64_t examples,
                             int micro_batches) {
  MutexLock lock(mutex_);
  EndComputing(/*dropped=*/false);
  if (micro_batches > 0) {
    // In shared work each push has an announcement, so its time belongs to the
    // pushes and not to the computing.
    progress_.micro_batches += micro_batches;
    progress_.micro_batches_time +=
        progress_.pass_times.back().computed - announcing_;
    progress_.pushes_time += announcing_;
  }
  announcing_ = absl::ZeroDuration();
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
  // A copy is checked, so that figures that are refused leave the others as
  // they are.
  LOCKSTEP_RETURN_IF_ERROR(CheckFigures(figures));
  progress_.figures = std::move(figures);
  return absl::OkStatus();
}

void ProgressMeter::Dropped() {
  {
    MutexLock lock(mutex_);
    EndComputing(/*dropped=*/true);
    announcing_ = absl::ZeroDuration();
    ++progress_.passes;
    ++progress_.stale;
  }
  EndPass();
}

void ProgressMeter::Accepted() {
  {
    MutexLock lock(mutex_);
    ++progress_.accepted;
  }
  EndPass();
}

void ProgressMeter::Stale() {
  {
    MutexLock lock(mutex_);
    ++progress_.stale;
  }
  EndPass();
}

void ProgressMeter::Duplicates(int64_t parts) {
  MutexLock lock(mutex_);
  progress_.duplicate += parts;
}

void ProgressMeter::BeginAnew() {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  End(now);
  phase_.reset();
  more_ = nullptr;
  use_ = Phase::kOther;
  times_ = {};
  step_ = -1;
  announcing_ = absl::ZeroDuration();
  progress_ = Progress();
  progress_.activity = kStarts;
}

Progress ProgressMeter::Get() const {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  Progress progress = progress_;
  if (phase_.has_value()) {
    progress.activity = TextOf(*phase_);
  } else if (more_ != nullptr) {
    std::string more = more_();
    if (!more.empty()) progress.activity = std::move(more);
  }
  progress.activity_kind = KindOf(use_);
  progress.activity_age = now - since_;
  // A wait that has not ended counts already, so that the status shows a worker
  // that hangs in one.
  if (IsWait(use_)) progress.waiting += now - counted_;
  if (use_ == Phase::kCompute) progress.pass_age += now - counted_;
  // A loss of a step long ago would pass for the present one.
  if (step_ > progress.local_step + kRecentSteps) {
    progress.loss = std::numeric_limits<double>::quiet_NaN();
  }
  return progress;
}

}  // namespace lockstep::worker
