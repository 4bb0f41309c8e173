#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_REPORT_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_REPORT_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/cluster/cluster.h"
#include "common/cluster/task_id.h"

namespace lockstep::cli {

// Returns the mistakes of a cluster whose single values are valid: a sentence
// with path and fix for each. Empty for a cluster that can train. A missing
// cluster is a mistake, because programs refuse to start without one.
std::vector<std::string> FindMistakes(const Cluster& cluster);

// Formats the report of `lockstep config check`: the task whose view it is, the
// chief, the counts; a table of all tasks with their ids, addresses and
// programs, and with a column for `reachable`, if there are results; then
// warnings and mistakes. Lines have at most `width` columns.
std::string FormatClusterReport(const Cluster& cluster,
                                const std::map<TaskId, std::string>& reachable,
                                const std::vector<std::string>& mistakes,
                                size_t width);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_REPORT_H_
