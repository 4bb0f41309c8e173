#ifndef LOCKSTEP_COMMON_BASE_CLOCK_H_
#define LOCKSTEP_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace lockstep {

// Clock returns the time. Classes that decide take a Clock as a parameter, so
// that tests control time.
//
// Leases, waits and ages must come from a Clock, never from absl::Now():
// someone may set the machine's wall clock, and leases would then expire early
// or never.
//
// Threads: safe to share.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // Starts at the wall time of its first use and advances steadily from there,
  // even if the wall clock is set. Never destroyed.
  static const Clock& Real();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CLOCK_H_
