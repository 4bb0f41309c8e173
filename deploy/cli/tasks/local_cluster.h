#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_CLUSTER_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_CLUSTER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "deploy/cli/tasks/local_hosts.h"

namespace lockstep::cli {

// LocalCluster is a cluster whose tasks all run on this machine.
struct LocalCluster {
  ClusterSpec spec;           // no port is 0
  std::vector<TaskId> tasks;  // in order of start: ps, chief, worker, evaluator
  TaskId chief;               // the task that hosts the chief
  std::string chief_address;
  int num_workers = 0;  // with a chief task that computes
  // There is no ps: tasks that compute, the chief among them, are workers with
  // mirrors.
  bool hosts_mirrors = false;
  std::vector<std::string> warnings;  // one sentence each
};

// Returns a free port, another one each time.
using PortChooser = std::function<absl::StatusOr<int>()>;

// Parses `json`, a document {"cluster": {...}} as in TF_CONFIG; its task is
// ignored. A port 0 is replaced by one from `choose_port` that the document
// does not have. `source` names the document in messages.
//
//   kInvalidArgument  not such a document; no ps or no worker; a job that lacks
//                     an index; an address that is not in `hosts`, or whose
//                     name does not resolve (names its path)
//   and the errors of `choose_port`
absl::StatusOr<LocalCluster> MakeLocalCluster(absl::string_view json,
                                              absl::string_view source,
                                              const LocalHosts& hosts,
                                              const PortChooser& choose_port);

// Returns the address of a cluster's chief, on any host.
//
//   kInvalidArgument  not such a document, or the chief's port is 0
absl::StatusOr<std::string> ChiefAddressOf(absl::string_view json,
                                           absl::string_view source);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_CLUSTER_H_
