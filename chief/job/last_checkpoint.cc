#include "chief/job/last_checkpoint.h"

namespace lockstep::chief {

void LastCheckpoint::Try(int64_t step, int64_t attempt, int64_t round,
                         JobActions& out) {
  phase_ = Phase::kClosing;
  checked_ = false;
  step_ = step;
  attempt_ = attempt;
  round_ = round;
  out.push_back(CloseTokens{round});
}

std::optional<absl::Status> LastCheckpoint::OnTokensClosed(
    const TokensClosed& event, JobActions& out) {
  // An answer to an attempt before the servers were brought together again.
  if (phase_ != Phase::kClosing || event.round != round_) return {};
  if (!event.status.ok() || job_.checkpoint.directory.empty()) {
    return End(event.status);
  }
  phase_ = Phase::kJoining;
  return OnCheckpoint(out);
}

std::optional<absl::Status> LastCheckpoint::OnCheckpoint(JobActions& out) {
  // One checkpoint at a time: an earlier one must end first.
  if (checkpoints_.busy()) return {};
  if (phase_ == Phase::kWriting) {
    const absl::Status& written = checkpoints_.last_result();
    // After a check it would be there again and again.
    if (!absl::IsAlreadyExists(written) || checked_) return End(written);
    Check(out);
    return {};
  }
  if (phase_ != Phase::kJoining) return {};
  if (checkpoints_.saved_step() == step_) {
    // A checkpoint that an earlier chief has written may have been damaged.
    Check(out);
  } else {
    Write(out);
  }
  return {};
}

std::optional<absl::Status> LastCheckpoint::OnSavedChecked(
    const SavedChecked& event, JobActions& out) {
  if (phase_ != Phase::kChecking || event.step != step_) return {};
  if (!event.whole.ok()) return End(event.whole.status());
  if (*event.whole) {
    if (checkpoints_.saved_step() != step_) checkpoints_.Saved(step_, out);
    return End(absl::OkStatus());
  }
  Write(out);
  return {};
}

void LastCheckpoint::Check(JobActions& out) {
  phase_ = Phase::kChecking;
  checked_ = true;
  out.push_back(CheckSaved{step_});
}

void LastCheckpoint::Write(JobActions& out) {
  phase_ = Phase::kWriting;
  checkpoints_.Start(step_, attempt_, out);
}

}  // namespace lockstep::chief
