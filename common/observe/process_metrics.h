#ifndef LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_
#define LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_

#include <vector>

#include "common/observe/metrics.h"

namespace lockstep {

// Returns the resources that this process uses: processor time and resident
// memory, under the names of Prometheus' client libraries, and
// lockstep_build_info, whose label is the program's version. Figures that the
// system does not provide are left out.
std::vector<Metric> ProcessMetrics();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_PROCESS_METRICS_H_
