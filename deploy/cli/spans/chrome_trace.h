#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_CHROME_TRACE_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_CHROME_TRACE_H_

#include <string>

#include "deploy/cli/spans/job_trace.h"

namespace lockstep::cli {

// Returns a trace as Perfetto and Chrome open it: a process for each task, in
// it rows whose spans do not overlap, times in microseconds since the first
// span. The clocks of `trace` must be aligned; the largest error of one of them
// is in otherData.
//
// The format is Chrome's "Trace Event Format", JSON object form.
std::string ChromeTraceJson(const JobTrace& trace);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_CHROME_TRACE_H_
