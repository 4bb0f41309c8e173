#ifndef LOCKSTEP_SERVER_UPDATE_ADAM_POWERS_H_
#define LOCKSTEP_SERVER_UPDATE_ADAM_POWERS_H_

#include <array>

#include "common/job/job_config.h"

namespace lockstep::server {

// AdamPowers are the two scalars that Adam shares between all variables of a
// job, beta1^t and beta2^t for step t = 1, 2, ... They are float32 for every
// dtype and part of the state: they round once in each step.
struct AdamPowers {
  float beta1_power = 0;  // 0 and unused unless the optimizer is Adam
  float beta2_power = 0;

  bool operator==(const AdamPowers&) const = default;
};

// The powers of every optimizer of a job, in the order of OptimizersOf().
using AllAdamPowers = std::array<AdamPowers, kMaxOptimizers>;

// Whether the optimizer has them: Adam and LazyAdam.
bool HasAdamPowers(const OptimizerConfig& config);

// The powers of the first step: beta1 and beta2 themselves.
AdamPowers InitialAdamPowers(const OptimizerConfig& config);

// The powers of the step after the one that used `powers`. Call it once per
// step, after all variables, also when no variable got a gradient.
AdamPowers NextAdamPowers(const OptimizerConfig& config, AdamPowers powers);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_ADAM_POWERS_H_
