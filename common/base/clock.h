#ifndef LOCKSTEP_COMMON_BASE_CLOCK_H_
#define LOCKSTEP_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace lockstep {

// Clock tells the time. Cores take one as a parameter, so that tests decide
// what time it is.
//
// Leases, waits and ages must come from a Clock, never from absl::Now(): the
// machine's wall clock may be set, and then leases would end, or never end.
//
// Threads: safe to share.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // Starts with the wall time at its first use and goes on steadily from there,
  // whatever happens to the wall clock. Never destroyed.
  static const Clock& Real();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CLOCK_H_
