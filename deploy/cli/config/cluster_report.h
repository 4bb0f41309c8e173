#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_REPORT_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_REPORT_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/cluster/cluster.h"
#include "common/cluster/task_id.h"

namespace lockstep {

// What is wrong with a cluster that each of its values is right for: a sentence
// with path and fix for each. Empty for a cluster that can train. No cluster
// is a mistake: no program starts without one.
std::vector<std::string> FindMistakes(const Cluster& cluster);

// Who is who, as `lockstep config check` shows it: whose view it is, the chief,
// the counts; a table of all tasks with their ids, addresses and programs, and
// with a column of its own for `reachable`, if there is any; then warnings and
// mistakes. Lines of at most `width` columns.
std::string FormatClusterReport(const Cluster& cluster,
                                const std::map<TaskId, std::string>& reachable,
                                const std::vector<std::string>& mistakes,
                                size_t width);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_CLUSTER_REPORT_H_
