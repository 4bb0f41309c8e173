#include "server/step/strict/mirror_parts.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/step/engine.h"

namespace lockstep::server {

absl::Status MirrorParts::Check(int first_part, int num_parts,
                                bool copied) const {
  if (!mirrored()) return NotMirrored();
  LOCKSTEP_RETURN_IF_ERROR(CheckRange(first_part, num_parts));
  for (int part = first_part; part < first_part + num_parts; ++part) {
    if (copied_[part] == copied) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("part ", part, " is summed by ",
                     copied ? "this server" : "another server",
                     "; ask the one that the plan names for it"));
  }
  return absl::OkStatus();
}

absl::Status MirrorParts::CheckPush(int first_part, size_t num_parts) const {
  if (!mirrored()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange(first_part, static_cast<int64_t>(num_parts)));
  for (size_t part = first_part; part < first_part + num_parts; ++part) {
    if (!copied_[part]) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("part ", part,
                     " is summed by another mirror since the mirrors of the "
                     "job changed; register again for the new plan"));
  }
  return absl::OkStatus();
}

absl::Status MirrorParts::CheckRange(int first_part, int64_t num_parts) const {
  return CheckPartRange(first_part, num_parts,
                        static_cast<int64_t>(copied_.size()));
}

absl::Status CommitRefused(const StepAttempt& asked, const StepAttempt& now,
                           const std::string& updated) {
  return absl::FailedPreconditionError(
      absl::StrCat("commit of step ", asked.step, ", attempt ", asked.attempt,
                   ", on a server at step ", now.step, ", attempt ",
                   now.attempt, ", with ", updated, " parts updated"));
}

absl::StatusOr<bool> IsAtHand(const StepAttempt& asked,
                              const StepAttempt& now) {
  // Attempts count within a step, so that the step decides first.
  if (asked.step != now.step ? asked.step < now.step
                             : asked.attempt < now.attempt) {
    return false;
  }
  if (asked.step == now.step && asked.attempt == now.attempt) return true;
  return absl::UnavailableError(
      absl::StrCat("attempt ", asked.attempt, " of step ", asked.step + 1,
                   " has not begun here; this server is at attempt ",
                   now.attempt, " of step ", now.step + 1, "; retry"));
}

}  // namespace lockstep::server
