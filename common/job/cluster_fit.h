#ifndef LOCKSTEP_COMMON_JOB_CLUSTER_FIT_H_
#define LOCKSTEP_COMMON_JOB_CLUSTER_FIT_H_

#include "absl/status/statusor.h"
#include "common/job/job_config.h"

namespace lockstep {

// Returns the job with the fields filled in that depend on a cluster of
// `num_workers` workers: replicas, initial tokens and the stall timeout.
//
//   kInvalidArgument  replicas that the cluster cannot supply, or that
//                     ValidateJobConfig() refuses; names the field, the value
//                     and the fix
absl::StatusOr<JobConfig> FitToCluster(JobConfig job, int num_workers);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CLUSTER_FIT_H_
