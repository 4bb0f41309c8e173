#ifndef LOCKSTEP_DEPLOY_CLI_LOGS_LOG_REASON_H_
#define LOCKSTEP_DEPLOY_CLI_LOGS_LOG_REASON_H_

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::cli {

// Returns why a process ended, from the last lines of its log: its last line of
// level error, or its output from before it had a log, or its last line;
// without the time, the level and the task. Empty if there are no lines.
std::string ReasonIn(const std::vector<std::string>& lines);

// Returns, of the last lines of a log, those to show for a process that has
// ended: the last `most`, or more if Python's last traceback has more, so that
// the first line of it, and the user's own code, are there. A traceback of more
// than 4 times `most` lines is cut. Lines that only mark a place in the line
// above are left out.
std::vector<std::string> EndToShow(const std::vector<std::string>& lines,
                                   size_t most);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOGS_LOG_REASON_H_
