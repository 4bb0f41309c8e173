#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_PASS_TRACE_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_PASS_TRACE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {

// Measured pass times, in seconds, by worker: at least one worker, each with at
// least one pass.
using PassTrace = std::vector<std::vector<double>>;

// Parses the JSON of a trace, {"pass_seconds": [[0.05, 0.052], [0.2]]}: one
// array for each worker. `source` names the text in messages.
//
//   kInvalidArgument  as ParseBoundedJson(); another form; a time that is not
//                     above 0 and at most a million seconds
absl::StatusOr<PassTrace> ParsePassTrace(absl::string_view text,
                                         absl::string_view source);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_PASS_TRACE_H_
