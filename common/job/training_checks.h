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

// Checks the settings of one optimizer, all of which must be in the range of
// their field, also those that its kind does not use.
//
//   kInvalidArgument  a setting is not allowed; names the field, such as
//                     "optimizer.beta1"
absl::Status CheckOptimizer(const OptimizerConfig& optimizer);

// Checks local_steps and the rule of local steps.
//
//   kInvalidArgument  as ValidateJobConfig(), which calls this
absl::Status CheckLocalSteps(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_TRAINING_CHECKS_H_
