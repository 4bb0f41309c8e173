#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_JOB_FILE_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_JOB_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"

namespace lockstep::cli {

// Parses a job file as the chief will: `settings` are "key=value" each, applied
// in order. `source` names the file in messages.
//
//   kInvalidArgument  the text or a setting is invalid, or the resulting job is
absl::StatusOr<JobConfig> DecodeJobFile(absl::string_view text,
                                        absl::string_view source,
                                        absl::Span<const std::string> settings);

// Returns the settings with "model.kind=external", unless the job file or a
// setting names a kind: for a job whose workers are programs of the user.
//
//   kInvalidArgument  the text is invalid; they name another kind
absl::StatusOr<std::vector<std::string>> SettingsForOwnProgram(
    absl::string_view text, absl::string_view source,
    std::vector<std::string> settings);

// Checks the kind of the model of a job that has a program of the user.
//
//   kInvalidArgument  it is not "external"
absl::Status CheckIsExternal(absl::string_view kind);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_JOB_FILE_H_
