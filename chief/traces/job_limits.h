#ifndef LOCKSTEP_CHIEF_TRACES_JOB_LIMITS_H_
#define LOCKSTEP_CHIEF_TRACES_JOB_LIMITS_H_

#include "common/job/job_config.h"
#include "common/trace/remedy_limits.h"

namespace lockstep::chief {

// Returns the ways to faster steps that `job` rules out, because
// ValidateJobConfig() or the servers would refuse them beside its other
// settings. `job` must come from FitToCluster().
RemedyLimits LimitsOf(const JobConfig& job);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TRACES_JOB_LIMITS_H_
