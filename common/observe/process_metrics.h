#ifndef LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_
#define LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_

#include <vector>

#include "common/observe/metrics.h"

namespace lockstep {

// What this process uses: processor time and resident memory, under the names
// that Prometheus' client libraries give them, and lockstep_build_info, whose
// label is the program's version. A figure that the system does not tell is
// left out.
std::vector<Metric> ProcessMetrics();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_
