// The updates of StrictEngine: the work of its threads on complete parts.

#include <cmath>
#include <utility>

#include "server/step/strict/strict_engine.h"

namespace lockstep::server {

PartWork StrictEngine::BeginWork(PartWork::Kind kind, int part) {
  parts_[part].updating = true;
  return {.kind = kind, .part = part, .step = step_, .attempt = attempt_};
}

void StrictEngine::MakeWork(int index, std::vector<PartWork>& work) {
  Part& part = parts_[index];
  if (part.updating || part.updated || squares_.has(index) ||
      part.collected.size() < static_cast<size_t>(replicas_)) {
    return;
  }
  // The map orders contributors by worker and slot, and so the summation.
  PartWork item = BeginWork(
      keeps_means() ? PartWork::Kind::kMeasure : PartWork::Kind::kUpdate,
      index);
  for (const auto& [who, contribution] : part.collected) {
    item.contributors.push_back(who);
    item.gradients.push_back(contribution.gradient);
  }
  work.push_back(std::move(item));
}

std::vector<PartWork> StrictEngine::MakeUpdates(double norm) {
  // First: squares_.waits() is false from here on, so neither a repeated
  // ApplyNorm() nor another thread in Run() begins the updates a second time.
  squares_.Decide();
  std::vector<PartWork> work;
  for (size_t part = 0; part < parts_.size(); ++part) {
    work.push_back(BeginWork(PartWork::Kind::kApply, static_cast<int>(part)));
    work.back().norm = norm;
  }
  return work;
}

ShardAnswers StrictEngine::RunAll(std::vector<PartWork> work) {
  Mutex mutex;
  ShardAnswers answers;
  ForEachShare(updater_, std::move(work), [&](std::vector<PartWork> share) {
    ShardAnswers ready = Run(std::move(share));
    MutexLock lock(mutex);
    answers.Append(std::move(ready));
  });
  return answers;
}

ShardAnswers StrictEngine::ApplyNorm(int64_t step, const MeanNorm& norm) {
  std::vector<PartWork> work;
  {
    MutexLock lock(mutex_);
    // The chief repeats the norm when an answer is lost, and a norm of an older
    // attempt may be delayed.
    if (step != step_ || norm.attempt != attempt_ || !squares_.waits() ||
        !failure_.ok()) {
      return {};
    }
    work = MakeUpdates(norm.norm);
  }
  return RunAll(std::move(work));
}

ShardAnswers StrictEngine::Run(std::vector<PartWork> work) {
  ShardAnswers answers;
  std::vector<PartWork> updates;  // of all parts, where this call began them
  while (!work.empty()) {
    PartWork item = std::move(work.back());
    work.pop_back();
    if (!MayRun(item, work, answers)) continue;
    // No lock is held here: this is the arithmetic of a step, and other parts
    // are updated at the same time.
    const absl::Status done =
        Perform(updater_, options_.refuse_non_finite, item);
    MutexLock lock(mutex_);
    FinishPart(item, done, work, answers);
    // A server that has all parts does not need the chief: the norm of its own
    // means is that of the job. The check runs under the lock of FinishPart(),
    // so exactly one thread finds that the last mean has arrived.
    if (limits_mean() && options_.has_all_parts && squares_.waits() &&
        failure_.ok()) {
      updates = MakeUpdates(std::sqrt(squares_.Sum()));
    }
  }
  // Last, because RunAll() divides the updates among processors and calls
  // Run().
  if (!updates.empty()) answers.Append(RunAll(std::move(updates)));
  return answers;
}

void StrictEngine::OnStaleWorkEnded(int part, std::vector<PartWork>& work,
                                    ShardAnswers& answers) {
  MakeWork(part, work);  // a newer attempt may have become complete
  // means_wanted() has left the part out until now.
  if (mirror_.copied(part)) answers.means_changed = true;
}

bool StrictEngine::MayRun(PartWork& item, std::vector<PartWork>& work,
                          ShardAnswers& answers) {
  MutexLock lock(mutex_);
  const int part = item.part;
  if (item.step != step_ || item.attempt != attempt_) {
    // The gradients of the newer attempt may have arrived while this work was
    // pending; the flag had kept MakeWork() from starting on them.
    parts_[part].updating = false;
    OnStaleWorkEnded(part, work, answers);
    return false;
  }
  // A mean is kept beside the values, so readers of the values do not delay it.
  if (item.kind == PartWork::Kind::kMeasure ||
      item.kind == PartWork::Kind::kKeep || updater_.ClaimNext(part)) {
    return true;
  }
  // The lock is held since ClaimNext(), so PartReturned(), which may be called
  // at once, finds the work here. `updating` stays set: MakeWork() must not
  // start the part a second time.
  blocked_.Add(std::move(item));
  return false;
}

ShardAnswers StrictEngine::PartReturned(int part) {
  std::vector<PartWork> work;
  {
    MutexLock lock(mutex_);
    work = blocked_.TakeOut(part);
  }
  return Run(std::move(work));
}

std::vector<int> StrictEngine::BlockedParts() const {
  MutexLock lock(mutex_);
  return blocked_.parts();
}

}  // namespace lockstep::server
