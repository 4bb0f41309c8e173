#include "deploy/cli/tasks/job_file.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/codec/job_config_codec.h"

namespace lockstep::cli {

absl::StatusOr<JobConfig> DecodeJobFile(
    absl::string_view text, absl::string_view source,
    absl::Span<const std::string> settings) {
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig job,
                            ParseJobText(text, source, settings));
  if (const absl::Status valid = ValidateJobConfig(job); !valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", valid.message()));
  }
  return job;
}

absl::StatusOr<std::vector<std::string>> SettingsForOwnProgram(
    absl::string_view text, absl::string_view source,
    std::vector<std::string> settings) {
  constexpr absl::string_view kKind = "model.kind=";
  LOCKSTEP_ASSIGN_OR_RETURN(std::string kind, ModelKindIn(text, source));
  // As ParseJobText(): the last one counts.
  for (const std::string& setting : settings) {
    // Found here: what follows would blame the model for it.
    if (!absl::StrContains(setting, '=')) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", setting,
                       ": has no \"=\"; give KEY=VALUE, as in --set "
                       "train_steps=1000"));
    }
    if (absl::StartsWith(setting, kKind)) kind = setting.substr(kKind.size());
  }
  if (kind.empty()) {
    settings.push_back(absl::StrCat(kKind, kExternalModel));
    return settings;
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckIsExternal(kind));
  return settings;
}

absl::Status CheckIsExternal(absl::string_view kind) {
  if (kind == kExternalModel) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model.kind is \"", kind,
      "\", which the built-in worker computes; a command of yours computes "
      "its own model: leave model.kind out, or the command"));
}

}  // namespace lockstep::cli
