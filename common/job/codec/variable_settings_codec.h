#ifndef LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "lockstep/v1/job.pb.h"

// What a job says of variables by name: their optimizers, moving averages and
// constraints. Neither function checks ranges.
namespace lockstep {

void WriteVariableSettings(const JobConfig& job, v1::JobConfig& proto);

//   kInvalidArgument  an enumeration without meaning; names the field
absl::Status ReadVariableSettings(const v1::JobConfig& proto, JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_
