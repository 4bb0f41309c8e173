#ifndef LOCKSTEP_COMMON_CLOCK_H_
#define LOCKSTEP_COMMON_CLOCK_H_

#include "absl/time/time.h"

namespace lockstep {

// Clock tells the time. Cores take one as a parameter, so that tests decide
// what time it is.
//
// Threads: safe to share.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // The machine's clock. Never destroyed.
  static const Clock& Real();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLOCK_H_
