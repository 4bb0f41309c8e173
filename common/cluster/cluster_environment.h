#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_ENVIRONMENT_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_ENVIRONMENT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/environment_file.h"
#include "common/cluster/tf_config.h"

namespace lockstep {

// Reads the cluster from the variables of an environment:
//
//   TF_CONFIG     takes precedence over all other variables.
//   CLUSTER_SPEC  else; as Vertex AI writes it, with pools for jobs
//                 (workerpool0 is chief, 1 worker, 2 ps, 3 evaluator), or as
//                 TonY does: the jobs alone, with this process's task in
//                 JOB_NAME and TASK_INDEX. Warns that it was used.
//
// `file` is the file that the variables come from; empty for this process's
// own.
//
//   kNotFound         neither is set; says the fix, and which variable has
//                     one of these names but for letter case
//   kInvalidArgument  as ReadTfConfig; TF_CONFIG set twice, with different
//                     values; a CLUSTER_SPEC without a task
absl::StatusOr<TfConfig> TfConfigOfEnvironment(const Environment& variables,
                                               absl::string_view file = "");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_ENVIRONMENT_H_
