#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_JSON_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_JSON_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "deploy/cli/status/job_status.h"

namespace lockstep {

// How a `lockstep run` ended.
struct RunResult {
  JobState state = JobState::kUnknown;  // kDone, kFailed or kStopped
  int exit_code = 0;                    // that `lockstep run` left with
  std::string summary{};                // its last line
  absl::Time ended_at{};

  bool operator==(const RunResult&) const = default;
};

// A status as one JSON object; deploy/README.md describes each field. All
// fields are always there: what is not known, or is no number, is null. Bytes
// that are no UTF-8 are replaced. `result` is of a run that has ended.
//
// Units: names end in _seconds where a number is one of seconds.
// `indent`: columns; -1: all on one line.
std::string FormatStatusJson(const JobStatus& status, int indent = 2,
                             const std::optional<RunResult>& result = {});

// What FormatStatusJson() has written with a result. `source` names the text in
// messages.
//
//   kInvalidArgument  not such a text
absl::StatusOr<RunResult> ParseResultJson(absl::string_view text,
                                          absl::string_view source);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_JSON_H_
