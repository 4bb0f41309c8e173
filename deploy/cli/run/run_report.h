#ifndef LOCKSTEP_DEPLOY_CLI_RUN_RUN_REPORT_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_RUN_REPORT_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/task_id.h"
#include "deploy/cli/run/supervisor.h"
#include "deploy/cli/status/job_status.h"

namespace lockstep {

// The end of a task's log, since its last start.
struct LogTail {
  std::string path{};
  std::vector<std::string> lines{};
  std::string reason{};  // as ReasonIn() has it, of a task that ended badly
};

// Where a run was.
struct RunPlace {
  std::string checkpoints{};         // the directory; empty: none are kept
  std::string program = "lockstep";  // as it can be called from anywhere
};

// How it went, in one line without a line feed, with the folder of the model of
// a job that is done. `status` is the chief's last answer, if there was any;
// `logs` has each task's.
std::string FormatLastLine(const RunOutcome& outcome,
                           const std::optional<JobStatus>& status,
                           const std::map<TaskId, LogTail>& logs);

// What a run says at its end: tasks that ended badly, the first with the end
// of its log; tasks that were started again; how the workers did; where its
// last checkpoint is; and FormatLastLine(), without the folder, which stands
// above.
//
// Units: the table is at most `width` columns wide.
std::string FormatRunReport(const RunOutcome& outcome,
                            const std::optional<JobStatus>& status,
                            const std::map<TaskId, LogTail>& logs,
                            const RunPlace& place, size_t width);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_RUN_REPORT_H_
