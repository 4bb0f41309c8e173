#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_ENVIRONMENT_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_ENVIRONMENT_H_

#include "absl/status/statusor.h"
#include "common/cluster/environment_file.h"
#include "common/cluster/tf_config.h"

namespace lockstep {

// Reads the cluster that an environment's variables describe:
//
//   TF_CONFIG     counts where it is set, whatever else is.
//   CLUSTER_SPEC  else; as Vertex AI writes it, with pools for jobs
//                 (workerpool0 is chief, 1 worker, 2 ps, 3 evaluator), or as
//                 TonY does: the jobs alone, with this process's task in
//                 JOB_NAME and TASK_INDEX. Warns that it was taken.
//
// Without either the cluster is empty: a single local task.
//
//   kInvalidArgument  as ParseTfConfig; TF_CONFIG set twice, with different
//                     values; a CLUSTER_SPEC that has no task
absl::StatusOr<TfConfig> TfConfigOfEnvironment(const Environment& variables);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_ENVIRONMENT_H_
