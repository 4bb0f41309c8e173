#include "server/update/adam_powers.h"

#include "common/numeric/denormals.h"
#include "server/update/update_kernels.h"

namespace lockstep::server {

bool HasAdamPowers(const OptimizerConfig& config) {
  return config.kind == OptimizerConfig::Kind::kAdam ||
         config.kind == OptimizerConfig::Kind::kLazyAdam;
}

AdamPowers InitialAdamPowers(const OptimizerConfig& config) {
  if (!HasAdamPowers(config)) return {};
  return {static_cast<float>(config.beta1), static_cast<float>(config.beta2)};
}

AdamPowers NextAdamPowers(const OptimizerConfig& config, AdamPowers powers) {
  if (!HasAdamPowers(config)) return {};
  const AdamPowers first = InitialAdamPowers(config);
  ScopedFlushDenormals flush;
  return {Product(powers.beta1_power, first.beta1_power),
          Product(powers.beta2_power, first.beta2_power)};
}

}  // namespace lockstep::server
