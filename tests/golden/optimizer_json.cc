#include "tests/golden/optimizer_json.h"

#include "absl/strings/str_cat.h"

namespace lockstep::golden {
namespace {

using Kind = OptimizerConfig::Kind;

double Argument(const Json& hyper, const char* name) {
  return ReadNumber(hyper.at(name));
}

void ReadMomentum(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kMomentum;
  config.momentum = Argument(hyper, "momentum");
  config.use_nesterov = hyper.at("use_nesterov").get<bool>();
}

void ReadAdagrad(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kAdagrad;
  config.initial_accumulator_value =
      Argument(hyper, "initial_accumulator_value");
}

void ReadAdam(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kAdam;
  config.beta1 = Argument(hyper, "beta1");
  config.beta2 = Argument(hyper, "beta2");
  config.epsilon = Argument(hyper, "epsilon");
}

void ReadRmsProp(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kRmsProp;
  config.decay = Argument(hyper, "decay");
  config.momentum = Argument(hyper, "momentum");
  config.epsilon = Argument(hyper, "epsilon");
  config.centered = hyper.at("centered").get<bool>();
}

void ReadAdadelta(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kAdadelta;
  config.rho = Argument(hyper, "rho");
  config.epsilon = Argument(hyper, "epsilon");
}

void ReadL1AndL2(const Json& hyper, OptimizerConfig& config) {
  config.l1 = Argument(hyper, "l1_regularization_strength");
  config.l2 = Argument(hyper, "l2_regularization_strength");
}

void ReadFtrl(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kFtrl;
  config.learning_rate_power = Argument(hyper, "learning_rate_power");
  config.initial_accumulator_value =
      Argument(hyper, "initial_accumulator_value");
  ReadL1AndL2(hyper, config);
  config.l2_shrinkage = Argument(hyper, "l2_shrinkage_regularization_strength");
  config.beta = Argument(hyper, "beta");
}

void ReadAdagradDa(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kAdagradDa;
  config.initial_accumulator_value =
      Argument(hyper, "initial_gradient_squared_accumulator_value");
  ReadL1AndL2(hyper, config);
}

void ReadProximalAdagrad(const Json& hyper, OptimizerConfig& config) {
  ReadAdagrad(hyper, config);
  config.kind = Kind::kProximalAdagrad;
  ReadL1AndL2(hyper, config);
}

void ReadProximalGradientDescent(const Json& hyper, OptimizerConfig& config) {
  config.kind = Kind::kProximalGradientDescent;
  ReadL1AndL2(hyper, config);
}

struct Reader {
  const char* name;
  void (*read)(const Json& hyper, OptimizerConfig& config);
};
constexpr Reader kReaders[] = {
    {"GradientDescent", [](const Json&, OptimizerConfig&) {}},
    {"Momentum", ReadMomentum},
    {"Adagrad", ReadAdagrad},
    {"Adam", ReadAdam},
    {"RMSProp", ReadRmsProp},
    {"Adadelta", ReadAdadelta},
    {"Ftrl", ReadFtrl},
    {"AdagradDA", ReadAdagradDa},
    {"ProximalAdagrad", ReadProximalAdagrad},
    {"ProximalGradientDescent", ReadProximalGradientDescent},
};

}  // namespace

OptimizerRecord ReadOptimizer(const std::string& name, const Json& hyper) {
  for (const Reader& reader : kReaders) {
    if (name != reader.name) continue;
    OptimizerRecord record;
    reader.read(hyper, record.config);
    record.learning_rate = Argument(hyper, "learning_rate");
    return record;
  }
  throw BadTrace(absl::StrCat("unknown optimizer \"", name, "\""));
}

}  // namespace lockstep::golden
