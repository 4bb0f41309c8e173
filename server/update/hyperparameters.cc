#include "server/update/hyperparameters.h"

namespace lockstep::server {
namespace {

float Single(double value) { return static_cast<float>(value); }

}  // namespace

Hyperparameters MakeHyperparameters(const OptimizerConfig& config,
                                    double learning_rate,
                                    const AdamPowers& powers,
                                    const VariableState& variable) {
  const float rate = Single(learning_rate);
  const float epsilon = Single(config.epsilon);
  Hyperparameters hyper;
  // All are filled in: the kind decides which are read, and they are few.
  hyper.learning_rate = rate;
  hyper.momentum = Single(config.momentum);
  hyper.adam = {rate,    Single(config.beta1), Single(config.beta2),
                epsilon, powers.beta1_power,   powers.beta2_power};
  hyper.rms_prop = {rate, Single(config.decay), hyper.momentum, epsilon,
                    config.centered};
  hyper.adadelta = {rate, Single(config.rho), epsilon};
  hyper.ftrl = {rate, Single(config.learning_rate_power), Single(config.l1),
                EffectiveL2(Single(config.l2), Single(config.beta), rate),
                Single(config.l2_shrinkage)};
  hyper.proximal = {rate, Single(config.l1), Single(config.l2),
                    static_cast<double>(variable.step) + 1};
  if (config.kind == OptimizerConfig::Kind::kSgd) {
    hyper.torch_sgd =
        MakeTorchSgd(config, learning_rate, variable.updates, variable.decays);
  } else if (IsTorchOptimizer(config.kind)) {
    hyper.torch_adam =
        MakeTorchAdam(config, learning_rate, variable.updates, variable.decays);
  }
  return hyper;
}

}  // namespace lockstep::server
