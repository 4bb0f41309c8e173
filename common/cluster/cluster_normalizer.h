#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_NORMALIZER_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_NORMALIZER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/cluster/tf_config.h"

namespace lockstep {

// A cluster in the canonical form that Cluster needs.
struct NormalizedCluster {
  ClusterSpec spec;  // only the jobs chief, worker, ps, evaluator
  std::vector<std::string> warnings;
};

// Renames the job `master` to chief, with a warning; drops unknown jobs;
// removes schemes from addresses; and moves a parameter server that lists only
// itself, at place 0, to its own index.
//
//   kInvalidArgument  an address that ParseHostPort refuses, or with port 0
//                     unless `allow_port_zero`; one address twice; `master`
//                     beside `chief` or `evaluator`; two chiefs; two evaluators
absl::StatusOr<NormalizedCluster> NormalizeCluster(const TfConfig& config,
                                                   TaskId self,
                                                   bool allow_port_zero);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_NORMALIZER_H_
