#ifndef LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_
#define LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_

#include "common/metrics/metric_families.h"

namespace lockstep {

// Returns the resources that this process uses, under the names of Prometheus'
// client libraries: processor time, resident memory, open files and their
// limit, and its start. Also lockstep_process_memory_limit_bytes, the memory
// and swap that the process may use, and lockstep_build_info, whose labels are
// the program's version and its compiler.
// Figures that the system does not provide are left out.
MetricFamilies ProcessMetrics();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_
