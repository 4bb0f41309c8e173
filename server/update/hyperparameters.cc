#include "server/update/hyperparameters.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace lockstep::server {
namespace {

float Single(double value) { return static_cast<float>(value); }

absl::Status CheckAtLeastZero(absl::string_view field, double value) {
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", but must be at least 0"));
}

absl::Status CheckFtrl(const OptimizerConfig& config) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastZero("initial_accumulator_value",
                                            config.initial_accumulator_value));
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastZero("l1", config.l1));
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastZero("l2", config.l2));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAtLeastZero("l2_shrinkage", config.l2_shrinkage));
  if (config.learning_rate_power <= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("learning_rate_power is ",
                                                 config.learning_rate_power,
                                                 ", but must be at most 0"));
}

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

absl::Status CheckHyperparameters(const OptimizerConfig& config) {
  if (config.kind == OptimizerConfig::Kind::kFtrl) return CheckFtrl(config);
  if ((config.kind != OptimizerConfig::Kind::kAdagrad &&
       config.kind != OptimizerConfig::Kind::kAdagradDa &&
       config.kind != OptimizerConfig::Kind::kProximalAdagrad) ||
      config.initial_accumulator_value > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("initial_accumulator_value is ",
                   config.initial_accumulator_value, ", but must be above 0"));
}

}  // namespace lockstep::server
