#include "server/step/strict/shared_gate.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/number_tree.h"

namespace lockstep::server {

SharedGate::SharedGate(const Options& options)
    : AttemptGate(options.total_num_replicas),
      numbers_(options.numbers),
      block_(options.block),
      next_block_(block_),
      blocks_(BlocksOf(numbers_, block_)) {}

void SharedGate::Regroup() {
  if (block_ == next_block_) return;
  block_ = next_block_;
  blocks_ = ShareNumbers(BlocksOf(numbers_, block_));
}

std::vector<Gate::Answer> SharedGate::Redo(int64_t attempt) {
  MutexLock lock(mutex_);
  // The chief repeats the call, and it may come after a newer attempt.
  if (attempt <= attempt_) return {};
  attempt_ = attempt;
  Regroup();
  blocks_.Restart();
  return AnswerWaiters();
}

std::vector<Gate::Answer> SharedGate::SetReplicas(
    int replicas_to_aggregate, const std::vector<int>& workers) {
  MutexLock lock(mutex_);
  const int block = BlockSizeOf(numbers_, replicas_to_aggregate);
  if (block > 0) next_block_ = block;
  // With the attempt at hand goes the size at hand: servers tell the gradients
  // of blocks of one size from those of another by their attempt.
  if (!active_) Regroup();
  roll_.SetWorkers(workers);
  for (const auto& [arrival, waiter] : waiters_) {
    if (roll_.TakesPart(waiter.pass.worker)) continue;
    blocks_.Release(waiter.pass.worker, waiter.pass.incarnation);
  }
  return CancelLeavers();
}

absl::Status SharedGate::Check(const Pass& pass) const {
  LOCKSTEP_RETURN_IF_ERROR(roll_.CheckTakesPart(pass));
  if (pass.slot < 0 || pass.slot >= numbers_) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot ", pass.slot, " is not below ", numbers_,
                     ", the micro-batches of a step"));
  }
  if (HasBlock(pass) && pass.slot % block_ != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot ", pass.slot, " is not the first of a block of ",
                     block_, " micro-batches"));
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
  // A delayed announcement must not claim a number: its worker has moved on.
  if (pass.local_step < global_step_ || finished_ ||
      !roll_.Note(pass, /*waits=*/false)) {
    return Announced{Decision::kTooLate, 0, global_step_};
  }
  if (!HasBlock(pass) || !blocks_.Claim(OfBlock(pass))) {
    return Announced{Decision::kNotNeeded, 0, global_step_};
  }
  return Announced{Decision::kSelected, attempt_, global_step_};
}

std::vector<Gate::Answer> SharedGate::File(Waiter waiter) {
  // `attempt` is not 0 if the worker pushed: all servers have answered, so the
  // number is done, unless the step has started a newer attempt since.
  const bool pushed =
      active_ && waiter.attempt > 0 && waiter.pass.local_step == global_step_;
  if (pushed) {
    // The wait may be a repeated one, whose own pass finished the number.
    const Pass pass = OfBlock(waiter.pass);
    waiter.not_needed = !HasBlock(pass) || blocks_.IsDoneByOther(pass);
    if (waiter.attempt == attempt_ && HasBlock(pass)) blocks_.Finish(pass);
  }
  Keep(waiter);
  // A number that is done ends the watches of its other passes, so every wait
  // is tried.
  return AnswerWaiters();
}

bool SharedGate::TryAnswer(const Waiter& waiter, Answer& answer) {
  answer.ticket = waiter.ticket;
  answer.not_needed = waiter.not_needed;
  if (AnswerIfFinished(answer)) return true;
  if (!active_) return false;
  const Pass pass = OfBlock(waiter.pass);
  const bool at_hand = pass.local_step == global_step_;
  answer.step = global_step_;
  // A worker that still computes gets no token.
  if (waiter.computing) {
    return !at_hand || !HasBlock(pass) || blocks_.IsDone(pass.slot);
  }
  // The step began again after the push. The worker still has the gradient, so
  // it pushes it once more unless another worker has finished the number.
  if (at_hand && waiter.attempt > 0 && waiter.attempt < attempt_ &&
      HasBlock(pass) && blocks_.Claim(pass)) {
    answer.outcome = Outcome::kRedo;
    answer.attempt = attempt_;
    return true;
  }
  // Nothing of the new sum came of the pass.
  if (at_hand && waiter.attempt > 0 && !HasBlock(pass)) {
    answer.not_needed = true;
  }
  const std::optional<int> index = blocks_.Take(pass);
  if (!index.has_value()) return false;
  answer.slot = *index * block_;
  answer.block = block_;
  answer.attempt = committed_attempt_;
  return true;
}

Gate::Expired SharedGate::Expire(int worker, uint64_t incarnation) {
  MutexLock lock(mutex_);
  const bool held = blocks_.Release(worker, incarnation);
  Expired expired = ExpireWaits(worker, incarnation);
  expired.held_token = held;
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
  // The chief repeats a commit whose answer was lost.
  if (step == global_step_) return std::vector<Answer>();
  LOCKSTEP_RETURN_IF_ERROR(CheckCommit(step, attempt));
  BeginNextStep();
  // The new step has no gradients yet, so blocks may have another size.
  Regroup();
  blocks_.Reset();
  return AnswerWaiters();
}

bool SharedGate::Counts(const Pass& pass) const {
  MutexLock lock(mutex_);
  return pass.local_step != global_step_ || blocks_.IsClaimed(OfBlock(pass));
}

}  // namespace lockstep::server
