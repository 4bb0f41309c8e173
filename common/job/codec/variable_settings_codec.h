#ifndef LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "lockstep/v1/job.pb.h"

// Conversion of a job's settings for variables by name: optimizers, moving
// averages and constraints. Ranges are not checked.
namespace lockstep {

void WriteVariableSettings(const JobConfig& job, v1::JobConfig& proto);

//   kInvalidArgument  an unknown enumeration value; names the field
absl::Status ReadVariableSettings(const v1::JobConfig& proto, JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_
