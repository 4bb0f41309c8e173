#ifndef LOCKSTEP_COMMON_PROGRAM_SECURITY_METRICS_H_
#define LOCKSTEP_COMMON_PROGRAM_SECURITY_METRICS_H_

#include "common/metrics/metric_families.h"

namespace lockstep {

// Metrics of this process's certificate, of connections that failed because of
// one, and of refused calls; none for a process without certificates.
MetricFamilies SecurityMetrics();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROGRAM_SECURITY_METRICS_H_
