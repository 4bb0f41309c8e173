#include "common/wire/epoch_bounds.h"

#include "absl/strings/str_cat.h"

namespace lockstep {

absl::Status CheckAttempt(int64_t attempt) {
  if (attempt >= 0 && attempt <= kLargestAttempt) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attempt is ", attempt, "; it must be in [0, ",
                   kLargestAttempt, "], so that a newer one can follow"));
}

}  // namespace lockstep
