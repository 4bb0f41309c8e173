#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_REPORT_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_REPORT_H_

#include <cstddef>
#include <string>

#include "deploy/cli/status/job_status.h"

namespace lockstep {

// One line per worker: what became of its gradients and how long it waited.
// Empty without workers. Lines of at most `width` columns.
std::string FormatWorkerSummary(const JobStatus& status, size_t width);

// What deaths, and workers that changed their shards, have cost:
// "interruptions cost: 2 steps redone, 0 committed steps repeated, 1.3 s
// without a server (1 time)". Empty where there were none.
std::string FormatLosses(const JobStatus& status);

// Who died or changed its shard when, what it held, what was redone and how
// long the job stood still: a line for each of the last ones. Empty where there
// were none.
std::string FormatDeaths(const JobStatus& status, size_t width);

// "done: step 1500, loss 0.2084, test accuracy 0.8912, 61.3 s", without a line
// feed, from the last answer of the chief; says so if that was not its final
// one, or if the input ended before the last step. The loss is there if this
// chief has made steps, the AUC where there are two classes, and the speed of
// jobs that count words.
std::string FormatDoneLine(const JobStatus& status);

// All that the chief says, as `lockstep status` shows it. Lines of at most
// `width` columns, texts of the chief longer than that are wrapped.
std::string FormatStatusReport(const JobStatus& status, size_t width);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_REPORT_H_
