#ifndef LOCKSTEP_COMMON_JOB_LEARNING_RATE_H_
#define LOCKSTEP_COMMON_JOB_LEARNING_RATE_H_

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

// The same of a job's own optimizer, with `scale` of its run settings.
double LearningRateInEffect(const JobConfig& job, double scale,
                            int64_t global_step);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_LEARNING_RATE_H_
