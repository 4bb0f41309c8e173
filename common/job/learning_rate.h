#ifndef LOCKSTEP_COMMON_JOB_LEARNING_RATE_H_
#define LOCKSTEP_COMMON_JOB_LEARNING_RATE_H_

#include <cstdint>
#include <optional>

#include "common/job/job_config.h"
#include "common/numeric/dtype.h"

namespace lockstep {

// Returns the learning rate of the update from `global_step` to the next step,
// computed in float64. The schedules are TensorFlow's, whose float32 results
// may differ in the last digits; kLinear and kCosine are those of scripts for
// PyTorch: a LambdaLR with warm-up, and CosineAnnealingLR.
//
// `config` must have passed ValidateJobConfig, and global_step must be >= 0.
// Otherwise the result is unspecified, but nothing crashes.
double LearningRate(const LearningRateConfig& config, int64_t global_step);

// Returns the rate of the job's own optimizer, times `scale`, which is
// RunSettings::learning_rate_scale.
double LearningRateInEffect(const JobConfig& job, double scale,
                            int64_t global_step);

// The learning rate of a step.
struct StepRate {
  int64_t step = 0;
  double rate = 0;
};

// Finds a rate of 0 for Ftrl, which divides by the rate. Returns the lowest
// rate of a job of `steps` steps, times `scale`, if `rule` is Ftrl and that
// rate is 0 where servers compute updates of variables of `type`: in float16,
// or else in float32 without subnormal numbers. Otherwise returns nothing.
// `config` must have no warm-up.
std::optional<StepRate> ZeroRateOfFtrl(const OptimizerConfig& rule,
                                       const LearningRateConfig& config,
                                       int64_t steps, DType type,
                                       double scale = 1);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_LEARNING_RATE_H_
