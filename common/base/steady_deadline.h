#ifndef LOCKSTEP_COMMON_BASE_STEADY_DEADLINE_H_
#define LOCKSTEP_COMMON_BASE_STEADY_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"

namespace lockstep {

// Returns the instant at which a wait of `timeout` ends that begins at the
// call. A year at most, because longer durations, such as an infinite one,
// might overflow the clock.
inline std::chrono::steady_clock::time_point SteadyDeadline(
    absl::Duration timeout) {
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24 * 365)));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_STEADY_DEADLINE_H_
