#ifndef LOCKSTEP_COMMON_MEMBERSHIP_LOAD_METER_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_LOAD_METER_H_

#include "absl/time/time.h"
#include "common/plan/process_load.h"

namespace lockstep {

// LoadMeter measures this process's use of processors and memory.
//
// Threads: not thread-safe.
class LoadMeter {
 public:
  // Returns the load at `now`. The processors in use are the mean since the
  // call before; 0 at the first call.
  ProcessLoad Measure(absl::Time now);

 private:
  absl::Time measured_ = absl::InfinitePast();  // at the call before
  absl::Duration processor_time_;               // until then
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_LOAD_METER_H_
