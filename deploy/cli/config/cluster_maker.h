#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_MAKER_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_MAKER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"

namespace lockstep::cli {

// The arguments of `lockstep config make`.
struct ClusterRequest {
  int ps = 1;  // 0: each task that computes has a mirror
  int workers = 1;
  bool chief = true;  // false: worker 0 hosts it
  bool evaluator = false;
  std::string host_pattern = "localhost";  // {task} and {index} are replaced
  // If not empty, in place of the pattern: task i of each job is on host
  // i modulo their number.
  std::vector<std::string> hosts = {};
  int port = 2222;  // the lowest; 0: `lockstep run` chooses all
};

// Returns the cluster with all addresses. Tasks that share a host get ports
// from `port` upwards; a task alone on its host gets `port`.
//
//   kInvalidArgument  ps below 0, workers below 1, either above 10000; a
//                     pattern whose hosts are no host names, or with braces
//                     around unknown words; a host that is no host name; a port
//                     outside 0 to 65535; more tasks on a host than ports
absl::StatusOr<ClusterSpec> MakeCluster(const ClusterRequest& request);

// Formats the well-formed `json` over several lines, with each list or object
// of tasks on one line.
std::string PrettyCluster(const std::string& json);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_MAKER_H_
