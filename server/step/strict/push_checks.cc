#include "server/step/strict/push_checks.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/count_text.h"

namespace lockstep::server {
namespace {

// Checks a gradient of a part, and its elements if `look_at_it`.
absl::Status CheckGradient(const PartUpdater& updater, int part,
                           PartGradient& gradient, bool look_at_it) {
  if (gradient.absent) return absl::OkStatus();
  if (gradient.rows.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(updater.AdmitRows(part, gradient));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(size_t size,
                              updater.GradientSize(part, gradient.type));
    if (TotalSize(gradient.slices) != size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "gradient of part ", part, " has ", TotalSize(gradient.slices),
          " bytes; as ", std::string(GradientTypeName(gradient.type)),
          " the part has ", size));
    }
  }
  return look_at_it ? updater.CheckFinite(part, gradient) : absl::OkStatus();
}

}  // namespace

absl::Status CheckPush(const PartUpdater& updater, bool refuse_non_finite,
                       bool answered_early, Push& push) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPartRange(
      push.first_part, static_cast<int64_t>(push.gradients.size()),
      updater.num_parts()));
  // The gradient of a single part is large, so its elements are checked while
  // they are summed. With several parts that would be too late: one part of the
  // push could have counted when another is refused.
  const bool look_now =
      refuse_non_finite &&
      (answered_early || push.gradients.size() > 1 || push.gradients[0].rows);
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckGradient(updater, push.first_part + static_cast<int>(i),
                      push.gradients[i], look_now));
  }
  return absl::OkStatus();
}

absl::Status CheckStep(int64_t named, int64_t step, bool prepared) {
  if (named <= step) return absl::OkStatus();
  if (prepared) {
    return absl::UnavailableError(absl::StrCat(
        "step ", named, " is prepared here, and the chief has not said yet ",
        "that it is committed; retry"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "step ", named, " is not committed; this server is at ", step));
}

absl::StatusOr<std::optional<PushOutcome>> JudgePush(const Push& push,
                                                     int64_t step,
                                                     int64_t attempt) {
  if (push.pass.local_step < step) return PushOutcome::kStale;
  if (push.attempt < attempt) return PushOutcome::kSuperseded;
  if (push.attempt > attempt) {
    return absl::UnavailableError(
        absl::StrCat("attempt ", push.attempt, " of step ", step + 1,
                     " has not begun here; this server is at ", attempt,
                     ", and hears of others from the chief; retry"));
  }
  return std::nullopt;
}

void WaitCounts::Add(bool copied, int64_t collected) {
  ++(copied ? means : open_parts);
  if (!copied) lacking = std::max(lacking, gradients - collected);
}

std::string TextOf(const WaitCounts& waits) {
  // Missing gradients are reported first: readers delay a step only when none
  // is missing.
  if (waits.open_parts == 0 && waits.blocked > 0) {
    return absl::StrCat("readers of older values of ",
                        CountText(waits.blocked, "part"));
  }
  if (waits.norm) return "the norm of the gradients of all servers";
  if (waits.open_parts > 0) {
    return absl::StrCat(waits.lacking, " of ",
                        CountText(waits.gradients, "gradient"), " of ",
                        CountText(waits.open_parts, "part"));
  }
  if (waits.means == 0) return "";
  return absl::StrCat("the means of ", CountText(waits.means, "part"),
                      " from other mirrors");
}

}  // namespace lockstep::server
