#include "worker/session/handover.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::Status Handover::Publish(Stage stage, const Offer& offer) {
  if (cancelled_) return absl::CancelledError("the job has ended");
  if (input_ended_) return absl::OutOfRangeError("end of input");
  // Another offer than Resume() drops the pass that waits for it.
  lost_ = lost_ || halfway_;
  halfway_ = false;
  stage_ = stage;
  offer_ = offer;
  taken_ = false;
  return AwaitAnswer();
}

absl::Status Handover::AwaitAnswer() {
  answer_.reset();
  changed_.SignalAll();
  // A call of `pass_` ends soon after Cancel(): its client is cancelled too.
  while (inside_ || (!answer_.has_value() && !cancelled_)) {
    changed_.Wait(mutex_);
  }
  if (stage_ != Stage::kEnded) stage_ = Stage::kNothing;
  pass_ = nullptr;
  if (answer_.has_value()) return answer_->status();
  // A program that has not taken the offer misses nothing of it, but it may
  // still be in an earlier pass that was withdrawn.
  lost_ = lost_ || taken_;
  return absl::CancelledError("the job has ended");
}

absl::Status Handover::OfferRows(const Offer& offer) {
  MutexLock lock(mutex_);
  return Publish(Stage::kRows, offer);
}

absl::StatusOr<GradientResult> Handover::OfferPass(const Offer& offer,
                                                   GradientPass& pass) {
  MutexLock lock(mutex_);
  pass_ = &pass;
  LOCKSTEP_RETURN_IF_ERROR(Publish(Stage::kPass, offer));
  return *answer_;
}

absl::Status Handover::OfferEarly(const Offer& offer, GradientPass& pass) {
  MutexLock lock(mutex_);
  pass_ = &pass;
  return Publish(Stage::kPass, offer);
}

absl::StatusOr<GradientResult> Handover::Resume(GradientPass& pass) {
  MutexLock lock(mutex_);
  if (cancelled_) return absl::CancelledError("the job has ended");
  if (input_ended_) return absl::OutOfRangeError("end of input");
  if (!halfway_) return absl::CancelledError("the job has ended");
  halfway_ = false;
  offer_.early = false;
  pass_ = &pass;
  stage_ = Stage::kPass;
  LOCKSTEP_RETURN_IF_ERROR(AwaitAnswer());
  return *answer_;
}

void Handover::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  changed_.SignalAll();
}

void Handover::Reopen() {
  MutexLock lock(mutex_);
  cancelled_ = false;
  input_ended_ = false;
  // A pass that still waits for Resume() is of the membership before.
  lost_ = lost_ || halfway_;
  halfway_ = false;
  changed_.SignalAll();
}

void Handover::End(const absl::Status& why) {
  MutexLock lock(mutex_);
  stage_ = Stage::kEnded;
  end_ = why;
  changed_.SignalAll();
}

Handover::Stage Handover::Take(absl::Duration timeout, Offer& offer) {
  MutexLock lock(mutex_);
  // An offer that has an answer is over, though the loop has not woken up yet
  // to withdraw it.
  while (stage_ == Stage::kNothing ||
         (stage_ != Stage::kEnded && answer_.has_value())) {
    if (!changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(timeout))) {
      return Stage::kNothing;
    }
  }
  lost_ = false;
  taken_ = true;
  offer = offer_;
  return stage_;
}

bool Handover::offers() const {
  MutexLock lock(mutex_);
  return (stage_ == Stage::kRows || stage_ == Stage::kPass) &&
         !answer_.has_value();
}

absl::Status Handover::end() const {
  MutexLock lock(mutex_);
  return end_;
}

bool Handover::ended() const {
  MutexLock lock(mutex_);
  return stage_ == Stage::kEnded;
}

absl::Status Handover::Check(Stage stage) const {
  if (lost_) return absl::AbortedError("the pass is not needed any more");
  if (stage_ == stage && taken_ && !answer_.has_value()) {
    return absl::OkStatus();
  }
  if (halfway_) {
    return absl::FailedPreconditionError(
        "the step before is not complete: call BeginGradients() until it "
        "returns true");
  }
  return absl::FailedPreconditionError(
      stage == Stage::kRows
          ? "rows can be chosen once for each step, before it is computed"
          : "no pass is open: the gradients of this one were handed in, or "
            "none has begun");
}

absl::Status Handover::Answer(Stage stage,
                              const absl::StatusOr<GradientResult>& answer) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(Check(stage));
  answer_ = answer;
  changed_.SignalAll();
  return absl::OkStatus();
}

absl::Status Handover::Chosen() {
  return Answer(Stage::kRows, GradientResult());
}

absl::Status Handover::NeedValues(size_t first, size_t count) {
  return Inside([first, count](GradientPass& pass) {
    return pass.NeedValues(first, count);
  });
}

absl::StatusOr<bool> Handover::BeginGradients(absl::Duration timeout) {
  MutexLock lock(mutex_);
  if (!halfway_) {
    LOCKSTEP_RETURN_IF_ERROR(Check(Stage::kPass));
    if (!offer_.early) return true;
    answer_ = GradientResult();
    halfway_ = true;
    changed_.SignalAll();
  }
  while (halfway_ && !cancelled_ && stage_ != Stage::kEnded) {
    if (!changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(timeout))) {
      return false;
    }
  }
  lost_ = lost_ || halfway_;
  halfway_ = false;
  if (!lost_) return true;
  return absl::AbortedError("the pass is not needed any more");
}

absl::Status Handover::CheckWanted() {
  {
    MutexLock lock(mutex_);
    // The loop decides about the pass; the program can only wait for that.
    if (halfway_ && !cancelled_) return absl::OkStatus();
  }
  return Inside([](GradientPass& pass) { return pass.CheckWanted(); });
}

absl::Status Handover::Ready(size_t variable) {
  return Inside([variable](GradientPass& pass) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    pass.GradientReady(variable);
    return absl::OkStatus();
  });
}

absl::Status Handover::Absent(size_t variable) {
  return Inside([variable](GradientPass& pass) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    pass.GradientAbsent(variable);
    return absl::OkStatus();
  });
}

absl::Status Handover::PullRows() {
  {
    MutexLock lock(mutex_);
    LOCKSTEP_RETURN_IF_ERROR(Check(Stage::kPass));
  }
  if (Inside([](GradientPass& pass) { return pass.PullRows(); }).ok()) {
    return absl::OkStatus();
  }
  // The reason is the answer that Inside() stored: the loop returns it, and it
  // ends the membership if it lasts.
  return absl::AbortedError("the pass is not needed any more");
}

absl::Status Handover::Inside(
    absl::FunctionRef<absl::Status(GradientPass&)> call) {
  GradientPass* pass = nullptr;
  {
    MutexLock lock(mutex_);
    LOCKSTEP_RETURN_IF_ERROR(Check(Stage::kPass));
    // No new call may begin after Cancel(): the loop waits only for one that is
    // under way, and destroys `pass_` then.
    if (cancelled_) return absl::AbortedError("the job has ended");
    inside_ = true;
    pass = pass_;
  }
  const absl::Status status = call(*pass);
  MutexLock lock(mutex_);
  inside_ = false;
  if (!status.ok()) {
    answer_ = status;
    lost_ = true;
  }
  changed_.SignalAll();
  return status;
}

void Handover::EndInput() {
  MutexLock lock(mutex_);
  if (halfway_) {
    // The loop takes the token of the pass, and finds this in Resume().
    halfway_ = false;
  } else {
    const bool offered = stage_ == Stage::kRows || stage_ == Stage::kPass;
    if (!offered || !Check(stage_).ok()) return;
    answer_ = absl::OutOfRangeError("end of input");
  }
  input_ended_ = true;
  lost_ = true;
  changed_.SignalAll();
}

absl::Status Handover::Done(const GradientResult& result) {
  return Answer(Stage::kPass, result);
}

}  // namespace lockstep::worker
