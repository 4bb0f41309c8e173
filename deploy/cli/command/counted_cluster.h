#ifndef LOCKSTEP_DEPLOY_CLI_COMMAND_COUNTED_CLUSTER_H_
#define LOCKSTEP_DEPLOY_CLI_COMMAND_COUNTED_CLUSTER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::cli {

// Tasks of a cluster without a cluster file; there is one chief besides.
struct TaskCounts {
  int ps = 1;
  bool ps_given = false;  // else `ps` is a default, which a strategy may change
  int workers = 0;
  int backups = 0;  // workers of which a step does not need the gradients
  bool evaluator = false;
};

// Returns {"cluster": {...}}, whose addresses are 127.0.0.1 with port 0.
//
//   kInvalidArgument  a number out of range: names the flag and the fix
absl::StatusOr<std::string> CountedClusterJson(const TaskCounts& counts);

// Returns the settings of the job, "key=value" of --set, and after them those
// that leave `backups` of `workers` workers out of each step; none without
// backups.
//
//   kInvalidArgument  there are backups, and a setting is about them, too, or
//                     there are too few workers for them
absl::StatusOr<std::vector<std::string>> WithBackups(
    const TaskCounts& counts, std::vector<std::string> settings);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COMMAND_COUNTED_CLUSTER_H_
