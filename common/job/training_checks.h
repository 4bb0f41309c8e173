#ifndef LOCKSTEP_COMMON_JOB_TRAINING_CHECKS_H_
#define LOCKSTEP_COMMON_JOB_TRAINING_CHECKS_H_

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep {

// Checks the settings that define updates and placement: optimizers, learning
// rates, moving averages, constraints, clipping, placement and partitioner.
//
//   kInvalidArgument  as ValidateJobConfig(), which calls this
absl::Status CheckTraining(const JobConfig& job);

// Checks local_steps and the rule of local steps.
//
//   kInvalidArgument  as ValidateJobConfig(), which calls this
absl::Status CheckLocalSteps(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_TRAINING_CHECKS_H_
