#include "tests/conformance/optimizer/optimizer_scenario.h"

#include <fstream>
#include <limits>

#include "nlohmann/json.hpp"

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;

double Number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  if (json == "inf") return infinity;
  if (json == "-inf") return -infinity;
  return std::numeric_limits<double>::quiet_NaN();
}

Values Tensor(const Json& json) {
  Values values;
  for (const Json& number : json.at("data")) values.push_back(Number(number));
  return values;
}

// TensorFlow's names of the slots, in the order in which they are made.
std::vector<std::string> SlotKeys(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kGradientDescent:
      return {};
    case OptimizerConfig::Kind::kMomentum:
      return {"momentum"};
    case OptimizerConfig::Kind::kAdam:
      return {"m", "v"};
  }
  return {};
}

OptimizerConfig Config(const Json& scenario) {
  const Json& hyper = scenario.at("hyper");
  OptimizerConfig config;
  if (scenario.at("optimizer") == "Momentum") {
    config.kind = OptimizerConfig::Kind::kMomentum;
    config.momentum = hyper.at("momentum");
    config.use_nesterov = hyper.at("use_nesterov");
  } else if (scenario.at("optimizer") == "Adam") {
    config.kind = OptimizerConfig::Kind::kAdam;
    config.beta1 = hyper.at("beta1");
    config.beta2 = hyper.at("beta2");
    config.epsilon = hyper.at("epsilon");
  }
  return config;
}

AdamPowers Powers(const Json& scalars) {
  return {scalars.value("beta1_power", 0.0f),
          scalars.value("beta2_power", 0.0f)};
}

// A variable that never gets a gradient has no slots.
std::vector<Values> Slots(const OptimizerConfig& config, const Json& recorded) {
  std::vector<Values> slots;
  for (const std::string& key : SlotKeys(config)) {
    if (recorded.contains(key)) slots.push_back(Tensor(recorded.at(key)));
  }
  return slots;
}

RecordedGradient Gradient(const Json& json) {
  using Kind = RecordedGradient::Kind;
  if (json.is_null()) return {Kind::kNone, {}};
  if (!json.contains("dense")) return {Kind::kSparse, {}};
  return {Kind::kDense, Tensor(json.at("dense"))};
}

RecordedStep Step(const OptimizerConfig& config, const Json& json) {
  RecordedStep step;
  step.ok = json.at("status") == "OK";
  for (const Json& gradient : json.at("gradients")) {
    step.gradients.push_back(Gradient(gradient));
  }
  const Json& after = json.at("after");
  for (const Json& variable : after.at("variables")) {
    step.after.variables.push_back(Tensor(variable));
  }
  for (const Json& slots : after.at("slots")) {
    step.after.slots.push_back(Slots(config, slots));
  }
  step.after.powers = Powers(after.at("scalars"));
  return step;
}

void ReadVariables(const Json& json, OptimizerScenario& scenario) {
  const std::vector<std::string> keys = SlotKeys(scenario.config);
  for (const Json& variable : json.at("variables")) {
    scenario.variable_names.push_back(variable.at("name"));
    scenario.initial.variables.push_back(Tensor(variable.at("initial")));
  }
  for (const Json& slots : json.at("initial_slots")) {
    scenario.initial.slots.push_back(Slots(scenario.config, slots));
  }
  for (const Json& slots : json.at("slot_variables")) {
    std::vector<std::string> names;
    for (const std::string& key : keys) {
      if (slots.contains(key)) names.push_back(slots.at(key));
    }
    scenario.slot_variables.push_back(names);
  }
}

OptimizerScenario Scenario(const Json& json) {
  OptimizerScenario scenario;
  scenario.name = json.at("name");
  scenario.config = Config(json);
  scenario.learning_rate = json.at("hyper").at("learning_rate");
  scenario.dtype = *ParseDType(json.at("dtype").get<std::string>());
  ReadVariables(json, scenario);
  scenario.initial.powers = Powers(json.at("initial_scalars"));
  for (const Json& step : json.at("steps")) {
    scenario.steps.push_back(Step(scenario.config, step));
  }
  return scenario;
}

}  // namespace

std::vector<OptimizerScenario> ReadOptimizerScenarios(const std::string& path) {
  std::vector<OptimizerScenario> scenarios;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    scenarios.push_back(Scenario(Json::parse(line)));
  }
  return scenarios;
}

}  // namespace lockstep::testing
