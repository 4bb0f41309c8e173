#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_NORMALIZER_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_NORMALIZER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/cluster/tf_config.h"

namespace lockstep {

// A cluster in the one form that Cluster works on.
struct NormalizedCluster {
  ClusterSpec spec;  // jobs chief, worker, ps, evaluator alone
  std::vector<std::string> warnings;
};

// Calls the job `master` chief, with a warning, leaves out jobs that have no
// meaning here, takes schemes off addresses, and puts a parameter server that
// sees only itself, at place 0 of its list, at its own index.
//
//   kInvalidArgument  an address that ParseHostPort refuses, or with port 0
//                     unless `allow_port_zero`; one address twice; `master`
//                     beside `chief` or `evaluator`; two chiefs; two evaluators
absl::StatusOr<NormalizedCluster> NormalizeCluster(const TfConfig& config,
                                                   TaskId self,
                                                   bool allow_port_zero);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_NORMALIZER_H_
