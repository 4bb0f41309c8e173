#ifndef LOCKSTEP_COMMON_PLAN_PROCESS_LOAD_H_
#define LOCKSTEP_COMMON_PLAN_PROCESS_LOAD_H_

#include <cstdint>

namespace lockstep {

// The load of a process on its machine, as its heartbeats report it.
struct ProcessLoad {
  int64_t resident_bytes = 0;
  // Least limit of the control groups above the process, or the machine's
  // memory.
  int64_t memory_limit_bytes = 0;
  double processors = 0;  // kept busy, mean since the heartbeat before

  bool operator==(const ProcessLoad&) const = default;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_PROCESS_LOAD_H_
