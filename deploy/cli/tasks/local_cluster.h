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

namespace lockstep {

// LocalCluster is a cluster whose tasks all run on this machine.
struct LocalCluster {
  ClusterSpec spec;           // no port is 0
  std::vector<TaskId> tasks;  // ps, chief, worker, evaluator: order of start
  TaskId chief;               // the task that hosts the chief
  std::string chief_address;
  int num_workers = 0;
  std::vector<std::string> warnings;  // a sentence each
};

// Gives a free port, another one each time.
using PortChooser = std::function<absl::StatusOr<int>()>;

// Reads `json`, a document {"cluster": {...}} as in TF_CONFIG, whose task does
// not matter. Ports given as 0 come from `choose_port`. `source` names the
// document in messages.
//
//   kInvalidArgument  not such a document; no ps or no worker; a job that lacks
//                     an index; an address that is not in `hosts` (names its
//                     path)
//   and what `choose_port` returns
absl::StatusOr<LocalCluster> MakeLocalCluster(absl::string_view json,
                                              absl::string_view source,
                                              const LocalHosts& hosts,
                                              const PortChooser& choose_port);

// Where the chief of a cluster serves, wherever that is.
//
//   kInvalidArgument  not such a document, or the chief's port is 0
absl::StatusOr<std::string> ChiefAddressOf(absl::string_view json,
                                           absl::string_view source);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_CLUSTER_H_
