#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_REPORT_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_REPORT_H_

#include <cstddef>
#include <string>

#include "common/status/job_status.h"

namespace lockstep::cli {

// Returns one line per worker: the counts of its gradients and its waiting
// time. Empty without workers. Lines have at most `width` columns.
std::string FormatWorkerSummary(const JobStatus& status, size_t width);

// Returns the cost of deaths, and of workers that changed their shards:
// "interruptions cost: 2 steps redone, 0 committed steps repeated, 1.3 s
// without a server (1 time)". Empty if there were none.
std::string FormatLosses(const JobStatus& status);

// Returns a line for each of the newest deaths and changes of shards: the task
// and the time, the token or announcement that it held, the redone step, and
// how long the job stood still. Empty if there were none.
std::string FormatDeaths(const JobStatus& status, size_t width);

// Returns the settings that define a step: "replicas_to_aggregate 2", or, if
// work is shared, the micro-batches of a step and of a push.
std::string StepText(const Settings& settings);

// Returns "done: step 1500, loss 0.2084, test accuracy 0.8912, 61.3 s", without
// a line feed, from the last answer of the chief; says so if that was not its
// final one, or if the input ended before the last step. Contains the loss if
// this chief has made steps, the AUC for two classes, and the speed of jobs
// that count words.
std::string FormatDoneLine(const JobStatus& status);

// Returns the output of `lockstep status`, the whole status. Lines have at most
// `width` columns; longer texts of the chief are wrapped.
std::string FormatStatusReport(const JobStatus& status, size_t width);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_REPORT_H_
