#ifndef LOCKSTEP_COMMON_BASE_PASSING_ERROR_H_
#define LOCKSTEP_COMMON_BASE_PASSING_ERROR_H_

#include "absl/status/status.h"

namespace lockstep {

// True if the same call may succeed later, once the server is alive: its caller
// repeats it.
inline bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PASSING_ERROR_H_
