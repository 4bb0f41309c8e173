#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_CLUSTER_FILE_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_CLUSTER_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/cluster.h"

namespace lockstep::cli {

// Parses a document {"cluster": {...}} as in TF_CONFIG; its task is ignored.
// Returns the view of the task that hosts the chief, which sees all training
// tasks. Ports may be 0: they are chosen at the start. `source` names the
// document in messages.
//
//   kInvalidArgument  not such a document; says what to write if there is no
//                     cluster, and else all that Cluster::Make() refuses
absl::StatusOr<Cluster> ParseClusterFile(absl::string_view json,
                                         absl::string_view source);

// As ParseClusterFile(), of the file that --cluster names.
//
//   kInvalidArgument  also: the file cannot be read
absl::StatusOr<Cluster> ReadClusterFile(const std::string& path);

// Returns warnings, such as those of a cluster, as lines "warning: ..." for
// people.
std::string WarningLines(const std::vector<std::string>& warnings);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_CLUSTER_FILE_H_
