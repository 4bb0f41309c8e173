#ifndef LOCKSTEP_DEPLOY_CLI_RUN_RUN_REPORT_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_RUN_REPORT_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/task_id.h"
#include "common/job/beginning.h"
#include "common/status/job_status.h"
#include "deploy/cli/run/supervisor.h"

namespace lockstep::cli {

// The end of a task's log, since the task's last start.
struct LogTail {
  std::string path{};
  std::vector<std::string> lines{};
  std::string reason{};  // as ReasonIn(), for a task that ended badly
};

// The directories of a run, the name of its program, and the state in which it
// began.
struct RunPlace {
  // The directory, from the root, since the result is read in other folders
  // too; empty: none are kept.
  std::string checkpoints{};
  // The directory of the servers' state, from the root; empty: it goes with the
  // run.
  std::string state{};
  std::string program = "lockstep";  // as it can be called from anywhere
  Beginning beginning{};
};

// Returns the result in one line without a line feed, with the last checkpoint
// and its folder. `status` is the chief's last answer, if there was one; `logs`
// has each task's.
std::string FormatLastLine(const RunOutcome& outcome,
                           const std::optional<JobStatus>& status,
                           const std::map<TaskId, LogTail>& logs,
                           const RunPlace& place);

// Returns the report at the end of a run: tasks that ended badly, the likely
// cause first, with the end of its log; tasks that were restarted; the workers'
// counts; the place of the last checkpoint; and FormatLastLine() without that
// place.
//
// Units: the table is at most `width` columns wide.
std::string FormatRunReport(const RunOutcome& outcome,
                            const std::optional<JobStatus>& status,
                            const std::map<TaskId, LogTail>& logs,
                            const RunPlace& place, size_t width);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_RUN_REPORT_H_
