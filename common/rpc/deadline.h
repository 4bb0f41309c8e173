#ifndef LOCKSTEP_COMMON_RPC_DEADLINE_H_
#define LOCKSTEP_COMMON_RPC_DEADLINE_H_

#include "absl/time/time.h"
#include "grpc/support/time.h"

namespace lockstep {

// Returns the deadline of a gRPC call or wait, `duration` from now on the
// steady clock, so that setting the wall clock does not move it.
inline gpr_timespec DeadlineIn(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) {
    return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  }
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(duration), GPR_TIMESPAN));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_DEADLINE_H_
