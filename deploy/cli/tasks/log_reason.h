#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOG_REASON_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOG_REASON_H_

#include <string>
#include <vector>

namespace lockstep::cli {

// Returns why a process ended, from the last lines of its log: its last line of
// level error, or its output from before it had a log, or its last line;
// without the time, the level and the task. Empty if there are no lines.
std::string ReasonIn(const std::vector<std::string>& lines);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOG_REASON_H_
