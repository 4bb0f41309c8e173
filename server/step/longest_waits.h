#ifndef LOCKSTEP_SERVER_STEP_LONGEST_WAITS_H_
#define LOCKSTEP_SERVER_STEP_LONGEST_WAITS_H_

#include "absl/time/time.h"

namespace lockstep::server {

// The longest time that a server leaves a call without an answer. Each is less
// than the deadline of the call that waits.
constexpr absl::Duration kLongestTokenWait = absl::Seconds(3);
// For the chief's wait for a step, whose answer then tells what the step lacks.
constexpr absl::Duration kLongestTake = absl::Seconds(1);
// For pulls and pushes that wait for a commit; as long as other waits of
// workers.
constexpr absl::Duration kLongestCommitWait = kLongestTokenWait;

// The time between two looks for calls that have waited for so long.
constexpr absl::Duration kLookForOldCalls = absl::Milliseconds(100);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_LONGEST_WAITS_H_
