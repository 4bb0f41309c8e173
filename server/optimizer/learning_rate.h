#ifndef LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_
#define LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "common/job/job_config.h"

namespace lockstep {

// The learning rate of the update that leads from `global_step` to the next
// one, computed in float64. The schedules are TensorFlow's; what it computes
// in float32 may differ from them in the last digits.
//
// `config` has passed ValidateJobConfig and global_step >= 0. Out of these
// ranges the result is unspecified, but nothing crashes.
double LearningRate(const LearningRateConfig& config, int64_t global_step);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_
