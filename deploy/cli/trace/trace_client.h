#ifndef LOCKSTEP_DEPLOY_CLI_TRACE_TRACE_CLIENT_H_
#define LOCKSTEP_DEPLOY_CLI_TRACE_TRACE_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/cli/spans/job_trace.h"

namespace lockstep::cli {

// Collects a trace of the job of the chief at `address`, within a second or
// two. A task that hands nothing in within `patience` is among the silent ones.
//
//   kDeadlineExceeded    no answer of the chief within `patience`
//   kFailedPrecondition  the tasks' heartbeats come too seldom for `patience`
//   others               as TraceService; the message starts with the address
absl::StatusOr<JobTrace> CollectTrace(const std::string& address,
                                      absl::Duration patience);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TRACE_TRACE_CLIENT_H_
