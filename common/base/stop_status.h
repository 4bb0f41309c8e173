#ifndef LOCKSTEP_COMMON_BASE_STOP_STATUS_H_
#define LOCKSTEP_COMMON_BASE_STOP_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace lockstep {

inline constexpr char kHoldPayload[] = "lockstep/hold";

// The status of a process that was stopped before the job was done: kCancelled.
// With `hold`, an operator stopped the job for good, and the exit code asks for
// no restart.
inline absl::Status StoppedStatus(const std::string& reason, bool hold) {
  absl::Status status = absl::CancelledError(reason);
  if (hold) status.SetPayload(kHoldPayload, absl::Cord("1"));
  return status;
}

inline bool IsHeld(const absl::Status& status) {
  return status.GetPayload(kHoldPayload).has_value();
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_STOP_STATUS_H_
