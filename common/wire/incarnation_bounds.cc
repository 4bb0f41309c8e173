#include "common/wire/incarnation_bounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep {

absl::Status CheckDrawn(const TaskId& task, uint64_t incarnation,
                        uint64_t newest) {
  // The sum cannot overflow: `newest` is at most kLargestIncarnation.
  const uint64_t most =
      std::max(kMaxDrawnIncarnation, newest + kMaxIncarnationLead);
  if (incarnation <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      task.ToString(), " has incarnation ", incarnation, ", which is above ",
      kMaxDrawnIncarnation, " and far above ", newest,
      ", the newest known; an incarnation is the wall time in microseconds: ",
      "set the clock of the sender's host"));
}

}  // namespace lockstep
