#ifndef LOCKSTEP_COMMON_WIRE_STATUS_DETAIL_H_
#define LOCKSTEP_COMMON_WIRE_STATUS_DETAIL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The part of a status that a caller may act on besides its code:
// v1::StatusDetail. A status carries it as payloads, which ToGrpcStatus()
// sends.

enum class FailureCause {
  kUnspecified = 0,    // the code is all there is
  kNoRoomForRows = 1,  // a growing table is full: the job must end
};

// Adds `cause` to `status`, which must not be OK. kUnspecified changes nothing.
absl::Status WithCause(absl::Status status, FailureCause cause);
FailureCause CauseOf(const absl::Status& status);

// Adds the newest known incarnation of the task to the refusal of an older one;
// 0 changes nothing. NewestIncarnationOf() returns 0 for a status without one.
absl::Status WithNewestIncarnation(absl::Status status, uint64_t newest);
uint64_t NewestIncarnationOf(const absl::Status& status);

// Returns a copy of `status` with another message and the same detail.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_STATUS_DETAIL_H_
