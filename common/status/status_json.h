#ifndef LOCKSTEP_COMMON_STATUS_STATUS_JSON_H_
#define LOCKSTEP_COMMON_STATUS_STATUS_JSON_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/status/job_status.h"

namespace lockstep {

// The result of `lockstep run`.
struct RunResult {
  JobState state = JobState::kUnknown;  // kDone, kFailed or kStopped
  int exit_code = 0;                    // the exit code of `lockstep run`
  std::string summary{};                // its last line
  absl::Time ended_at{};

  bool operator==(const RunResult&) const = default;
};

// Formats a status as one JSON object; deploy/README.md describes each field.
// All fields are always present: unknown values, and values that are no number,
// are null. Bytes that are no UTF-8 are replaced. `result` is that of a
// finished run.
//
// Units: names of seconds end in _seconds. `indent`: columns; -1: all on one
//        line.
std::string FormatStatusJson(const JobStatus& status, int indent = 2,
                             const std::optional<RunResult>& result = {});

// Parses the output of FormatStatusJson() with a result. `source` names the
// text in messages.
//
//   kInvalidArgument  not such a text
absl::StatusOr<RunResult> ParseResultJson(absl::string_view text,
                                          absl::string_view source);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STATUS_STATUS_JSON_H_
