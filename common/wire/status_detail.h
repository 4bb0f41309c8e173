#ifndef LOCKSTEP_COMMON_WIRE_STATUS_DETAIL_H_
#define LOCKSTEP_COMMON_WIRE_STATUS_DETAIL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// What a caller may decide by beside the code of a status: v1::StatusDetail. A
// status carries it as payloads, which ToGrpcStatus() puts on the wire.

enum class FailureCause {
  kUnspecified = 0,    // the code says all
  kNoRoomForRows = 1,  // a growing table is full: the end of the job
};

// `status` must not be OK. kUnspecified changes nothing.
absl::Status WithCause(absl::Status status, FailureCause cause);
FailureCause CauseOf(const absl::Status& status);

// A refusal of an incarnation, since `newest` of the same task is known. 0
// changes nothing, and is what a status without one returns.
absl::Status WithNewestIncarnation(absl::Status status, uint64_t newest);
uint64_t NewestIncarnationOf(const absl::Status& status);

// A copy of `status` with another message and the same detail.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_STATUS_DETAIL_H_
