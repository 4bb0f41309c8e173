#include "server/step/strict/shared_gate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::server {

SharedGate::SharedGate(const Options& options)
    : roll_(options.total_num_replicas), numbers_(options.numbers) {}

std::vector<Gate::Answer> SharedGate::CancelWaits(int worker) {
  std::vector<Answer> answers;
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.pass.worker != worker) return false;
    answers.push_back(Answer{waiter.ticket, Outcome::kCancelled});
    return true;
  });
  return answers;
}

std::vector<Gate::Answer> SharedGate::Activate(int64_t global_step) {
  MutexLock lock(mutex_);
  if (active_) return {};
  active_ = true;
  global_step_ = global_step;
  return AnswerWaiters();
}

std::vector<Gate::Answer> SharedGate::Redo(int64_t attempt) {
  MutexLock lock(mutex_);
  if (attempt <= attempt_) return {};
  attempt_ = attempt;
  numbers_.Restart();
  return AnswerWaiters();
}

std::vector<Gate::Answer> SharedGate::SetReplicas(
    int /*replicas_to_aggregate*/, const std::vector<int>& workers) {
  MutexLock lock(mutex_);
  roll_.SetWorkers(workers);
  std::vector<Pass> leavers;
  for (const Waiter& waiter : waiters_) {
    if (!roll_.TakesPart(waiter.pass.worker)) leavers.push_back(waiter.pass);
  }
  std::vector<Answer> answers;
  for (const Pass& pass : leavers) {
    numbers_.Release(pass.worker, pass.incarnation);
    for (const Answer& answer : CancelWaits(pass.worker)) {
      answers.push_back(answer);
    }
  }
  return answers;
}

absl::Status SharedGate::Check(const Pass& pass) const {
  LOCKSTEP_RETURN_IF_ERROR(roll_.CheckTakesPart(pass));
  if (pass.slot < 0 || pass.slot >= numbers_.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot ", pass.slot, " is not below ", numbers_.count(),
                     ", the micro-batches of a step"));
  }
  if (active_) LOCKSTEP_RETURN_IF_ERROR(CheckBegun(pass, global_step_));
  return roll_.CheckIncarnation(pass);
}

absl::StatusOr<Gate::Announced> SharedGate::Announce(const Pass& pass) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(Check(pass));
  if (!active_) {
    return absl::FailedPreconditionError(
        "no step has begun; ask the chief for the plan first");
  }
  // A delayed announcement must not claim a number: its worker has gone on.
  if (pass.local_step < global_step_ || finished_ ||
      !roll_.Note(pass, /*waits=*/false)) {
    return Announced{Decision::kTooLate, 0, global_step_};
  }
  if (!numbers_.Claim(pass)) {
    return Announced{Decision::kNotNeeded, 0, global_step_};
  }
  return Announced{Decision::kSelected, attempt_, global_step_};
}

absl::StatusOr<std::vector<Gate::Answer>> SharedGate::Wait(uint64_t ticket,
                                                           const Pass& pass,
                                                           int64_t attempt,
                                                           absl::Time now) {
  MutexLock lock(mutex_);
  return File({ticket, pass, attempt, now, /*computing=*/false});
}

absl::StatusOr<std::vector<Gate::Answer>> SharedGate::Watch(uint64_t ticket,
                                                            const Pass& pass,
                                                            absl::Time now) {
  MutexLock lock(mutex_);
  return File({ticket, pass, 0, now, /*computing=*/true});
}

absl::StatusOr<std::vector<Gate::Answer>> SharedGate::File(Waiter waiter) {
  LOCKSTEP_RETURN_IF_ERROR(Check(waiter.pass));
  if (!roll_.Note(waiter.pass, /*waits=*/!waiter.computing)) {
    return std::vector<Answer>{{waiter.ticket, Outcome::kCancelled}};
  }
  const std::vector<Answer> replaced = CancelWaits(waiter.pass.worker);
  const bool pushed =
      active_ && waiter.attempt > 0 && waiter.pass.local_step == global_step_;
  if (pushed) {
    waiter.not_needed = numbers_.IsDone(waiter.pass.slot);
    if (waiter.attempt == attempt_) numbers_.Finish(waiter.pass);
  }
  waiters_.push_back(waiter);
  std::vector<Answer> answers = AnswerWaiters();
  answers.insert(answers.end(), replaced.begin(), replaced.end());
  return answers;
}

bool SharedGate::TryAnswer(const Waiter& waiter, Answer& answer) {
  answer.ticket = waiter.ticket;
  answer.not_needed = waiter.not_needed;
  if (finished_) {
    answer.outcome = Outcome::kFinished;
    return true;
  }
  if (!active_) return false;
  const Pass& pass = waiter.pass;
  const bool at_hand = pass.local_step == global_step_;
  answer.step = global_step_;
  // A worker that still computes gets no token.
  if (waiter.computing) return !at_hand || numbers_.IsDone(pass.slot);
  if (at_hand && waiter.attempt > 0 && waiter.attempt < attempt_ &&
      numbers_.Claim(pass)) {
    answer.outcome = Outcome::kRedo;
    answer.attempt = attempt_;
    return true;
  }
  const std::optional<int> number = numbers_.Take(pass);
  if (!number.has_value()) return false;
  answer.slot = *number;
  answer.attempt = committed_attempt_;
  return true;
}

std::vector<Gate::Answer> SharedGate::AnswerWaiters() {
  std::vector<Answer> answers;
  std::vector<Waiter> left;
  for (const Waiter& waiter : waiters_) {
    Answer answer;
    if (TryAnswer(waiter, answer)) {
      answers.push_back(answer);
    } else {
      left.push_back(waiter);
    }
  }
  waiters_ = std::move(left);
  return answers;
}

void SharedGate::Cancel(uint64_t ticket) {
  MutexLock lock(mutex_);
  std::erase_if(waiters_,
                [&](const Waiter& waiter) { return waiter.ticket == ticket; });
}

Gate::Expired SharedGate::Expire(int worker, uint64_t incarnation) {
  MutexLock lock(mutex_);
  Expired expired;
  const uint64_t admitted = roll_.Expire(worker, incarnation);
  expired.held_token = numbers_.Release(worker, incarnation);
  // A worker has one wait, which may be its successor's.
  const bool waits =
      std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
        return waiter.pass.worker == worker &&
               waiter.pass.incarnation < admitted;
      });
  if (waits) expired.answers = CancelWaits(worker);
  for (const Answer& answer : AnswerWaiters()) {
    expired.answers.push_back(answer);
  }
  expired.step = global_step_;
  expired.attempt = attempt_;
  return expired;
}

Gate::Replaced SharedGate::Replace(int /*worker*/, int64_t /*step*/,
                                   int64_t /*attempt*/) {
  MutexLock lock(mutex_);
  Replaced replaced;
  replaced.step = global_step_;
  replaced.attempt = attempt_;
  return replaced;
}

absl::StatusOr<std::vector<Gate::Answer>> SharedGate::Commit(int64_t step,
                                                             int64_t attempt) {
  MutexLock lock(mutex_);
  if (step == global_step_) return std::vector<Answer>();
  if (step != global_step_ + 1 || attempt != attempt_) {
    return absl::FailedPreconditionError(
        absl::StrCat("commit of attempt ", attempt, " of step ", step,
                     " while the global step is ", global_step_,
                     " and the attempt ", attempt_, "; commit attempt ",
                     attempt_, " of step ", global_step_ + 1));
  }
  global_step_ = step;
  committed_attempt_ = attempt;
  attempt_ = 1;
  numbers_.Reset();
  return AnswerWaiters();
}

std::vector<Gate::Answer> SharedGate::Finish() {
  MutexLock lock(mutex_);
  finished_ = true;
  return AnswerWaiters();
}

void SharedGate::Reopen() {
  MutexLock lock(mutex_);
  finished_ = false;
}

int64_t SharedGate::global_step() const {
  MutexLock lock(mutex_);
  return global_step_;
}

uint64_t SharedGate::NewestIncarnation(int worker) const {
  MutexLock lock(mutex_);
  return roll_.NewestIncarnation(worker);
}

std::vector<Gate::Waiting> SharedGate::WaitingWorkers() const {
  MutexLock lock(mutex_);
  std::vector<Waiting> waiting;
  for (const Waiter& waiter : waiters_) {
    if (!waiter.computing)
      waiting.push_back({waiter.pass.worker, waiter.since});
  }
  return waiting;
}

bool SharedGate::Counts(const Pass& pass) const {
  MutexLock lock(mutex_);
  return pass.local_step != global_step_ || numbers_.IsClaimed(pass);
}

}  // namespace lockstep::server
