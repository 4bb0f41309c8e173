#ifndef LOCKSTEP_CHIEF_TRACES_JOB_LIMITS_H_
#define LOCKSTEP_CHIEF_TRACES_JOB_LIMITS_H_

#include "common/job/job_config.h"
#include "common/trace/remedy_limits.h"

namespace lockstep::chief {

// Returns the ways to faster steps that `job` rules out: ValidateJobConfig()
// would refuse them beside its other settings, or its servers do. `job` is one
// of FitToCluster().
RemedyLimits LimitsOf(const JobConfig& job);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TRACES_JOB_LIMITS_H_
