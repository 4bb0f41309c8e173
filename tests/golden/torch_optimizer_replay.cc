#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/update/optimizer.h"
#include "server/update/slots.h"
#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

// PyTorch fuses some multiplications with additions.
constexpr double kUlps = 2;

// The parameter and its slots as they were recorded after a step.
struct TorchState {
  std::vector<float> value;
  std::vector<std::vector<float>> slots;
  int64_t updates = 0;
};

std::vector<float> ReadFloats(const Json& numbers) {
  std::vector<float> floats;
  for (const Json& number : numbers) {
    floats.push_back(static_cast<float>(ReadNumber(number)));
  }
  return floats;
}

OptimizerConfig ReadConfig(const Json& scenario) {
  const std::string kind = scenario.at("kind");
  OptimizerConfig config;
  if (kind == "SGD") {
    config.kind = OptimizerConfig::Kind::kSgd;
  } else if (kind == "ADAM_TORCH") {
    config.kind = OptimizerConfig::Kind::kAdamTorch;
  } else if (kind == "ADAMW") {
    config.kind = OptimizerConfig::Kind::kAdamW;
  } else {
    throw BadTrace("kind is " + kind);
  }
  const Json& hyper = scenario.at("hyper");
  config.momentum = hyper.value("momentum", DefaultMomentum(config.kind));
  config.dampening = hyper.value("dampening", 0.0);
  config.use_nesterov = hyper.value("use_nesterov", false);
  config.beta1 = hyper.value("beta1", config.beta1);
  config.beta2 = hyper.value("beta2", config.beta2);
  config.epsilon = hyper.value("epsilon", DefaultEpsilon(config.kind));
  config.weight_decay =
      hyper.value("weight_decay", DefaultWeightDecay(config.kind));
  return config;
}

// Slots that PyTorch has not made yet are zeros.
TorchState ReadState(const Json& step,
                     const std::vector<server::SlotSpec>& slots) {
  TorchState state;
  state.value = ReadFloats(step.at("value"));
  state.updates = ReadInt(step.at("updates"));
  const Json& recorded = step.at("slots");
  if (recorded.size() != slots.size() && state.updates > 0) {
    throw BadTrace("another number of slots than the optimizer's");
  }
  for (const server::SlotSpec& slot : slots) {
    state.slots.push_back(recorded.contains(slot.key)
                              ? ReadFloats(recorded.at(slot.key))
                              : std::vector<float>(state.value.size(), 0));
    if (state.slots.back().size() != state.value.size()) {
      throw BadTrace("a slot of another size than the value");
    }
  }
  return state;
}

absl::Span<std::byte> Bytes(std::vector<float>& floats) {
  return {reinterpret_cast<std::byte*>(floats.data()),
          floats.size() * sizeof(float)};
}

absl::Status Apply(const OptimizerConfig& config, double learning_rate,
                   std::vector<float> gradient, TorchState& state) {
  const server::ByteSlice slice = {Bytes(gradient).data(),
                                   Bytes(gradient).size()};
  const server::GradientSlices gradients = {{&slice, 1}};
  server::ApplyInput input;
  input.dtype = DType::kFloat32;
  input.learning_rate = learning_rate;
  input.updates = state.updates;
  input.gradients = {&gradients, 1};
  input.old_value = input.new_value = Bytes(state.value);
  for (size_t i = 0; i < state.slots.size(); ++i) {
    input.old_slots[i] = input.new_slots[i] = Bytes(state.slots[i]);
  }
  ++state.updates;
  return server::Optimizer(config).Apply(input);
}

std::vector<double> Doubles(const std::vector<float>& floats) {
  return {floats.begin(), floats.end()};
}

// Where terms cancel, the unit in the last place is that of the largest term:
// of the state before and after, of the change, or of the gradient.
std::vector<double> LargestTerms(const std::vector<float>& before,
                                 const std::vector<float>& after,
                                 const std::vector<float>& gradient) {
  std::vector<double> largest;
  for (size_t i = 0; i < after.size(); ++i) {
    largest.push_back(
        std::max({std::abs(before[i]), std::abs(after[i]),
                  std::abs(after[i] - before[i]), std::abs(gradient[i])}));
  }
  return largest;
}

void Compare(absl::string_view what, const std::vector<float>& expected,
             const std::vector<float>& got, const std::vector<double>& scale,
             Report& report) {
  if (Near(DType::kFloat32, Doubles(expected), Doubles(got), scale, kUlps)) {
    return;
  }
  report.Add(what, Text(Doubles(expected)), Text(Doubles(got)));
}

}  // namespace

// Each step begins at the recorded state before it.
void ReplayTorchOptimizer(const Json& scenario, Report& report) {
  const OptimizerConfig config = ReadConfig(scenario);
  const double rate = ReadNumber(scenario.at("hyper").at("learning_rate"));
  const std::vector<server::SlotSpec> slots = server::Slots(config);
  TorchState before;
  before.value = ReadFloats(scenario.at("initial"));
  before.slots.assign(slots.size(), std::vector<float>(before.value.size(), 0));
  const std::vector<float> none(before.value.size(), 0);
  size_t index = 0;
  for (const Json& step : scenario.at("steps")) {
    report.Begin(index++, "step");
    const TorchState expected = ReadState(step, slots);
    TorchState after = before;
    if (!step.at("gradient").is_null()) {
      const std::vector<float> gradient = ReadFloats(step.at("gradient"));
      if (gradient.size() != none.size()) {
        throw BadTrace("a gradient of another size than the value");
      }
      const absl::Status status = Apply(config, rate, gradient, after);
      report.Expect("status", "OK", StatusName(status));
      for (size_t i = 0; i < slots.size(); ++i) {
        Compare(slots[i].key, expected.slots[i], after.slots[i],
                LargestTerms(before.slots[i], after.slots[i], gradient),
                report);
      }
    }
    Compare("value", expected.value, after.value,
            LargestTerms(before.value, after.value, none), report);
    report.Expect("updates", expected.updates, after.updates);
    before = expected;
  }
}

}  // namespace lockstep::golden
