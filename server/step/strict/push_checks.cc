#include "server/step/strict/push_checks.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

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
  const int64_t end =
      push.first_part + static_cast<int64_t>(push.gradients.size());
  if (push.first_part < 0 || push.gradients.empty() ||
      end > updater.num_parts()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parts ", push.first_part, " to ", end - 1, " are not all among the ",
        updater.num_parts(), " parts of this server"));
  }
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

}  // namespace lockstep::server
