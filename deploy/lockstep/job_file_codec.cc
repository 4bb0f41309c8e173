#include "deploy/lockstep/job_file_codec.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/job/job_config_codec.h"
#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<JobConfig> DecodeJobFile(
    absl::string_view text, absl::string_view source,
    absl::Span<const std::string> settings) {
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig job, ParseJobText(text, source));
  for (const std::string& setting : settings) {
    LOCKSTEP_RETURN_IF_ERROR(ApplyOverride(setting, job));
  }
  if (const absl::Status valid = ValidateJobConfig(job); !valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", valid.message()));
  }
  return job;
}

}  // namespace lockstep
