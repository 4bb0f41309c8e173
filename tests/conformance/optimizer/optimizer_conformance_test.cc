// Replays updates that TensorFlow's own kernels made. Each step starts from
// the recorded state before it and must end in the recorded state after it,
// bit for bit (-0 equals 0, NaN equals NaN).

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/optimizer/adam_powers.h"
#include "server/optimizer/optimizer.h"
#include "server/optimizer/slots.h"
#include "tests/conformance/optimizer/optimizer_scenario.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

template <typename T>
std::vector<T> Cast(const Values& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <typename T>
absl::Span<std::byte> Bytes(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

template <typename T>
void ExpectSame(const std::vector<T>& actual, const Values& recorded,
                const std::string& what) {
  ASSERT_EQ(actual.size(), recorded.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    const T expected = static_cast<T>(recorded[i]);
    if (std::isnan(expected) && std::isnan(actual[i])) continue;
    EXPECT_EQ(actual[i], expected) << what << ", element " << i;
  }
}

// One update of one variable in place.
template <typename T>
void Replay(const OptimizerScenario& scenario, const OptimizerState& before,
            size_t variable, const RecordedStep& step) {
  std::vector<T> value = Cast<T>(before.variables[variable]);
  std::vector<std::vector<T>> slots;
  for (const Values& slot : before.slots[variable]) {
    slots.push_back(Cast<T>(slot));
  }
  std::vector<T> gradient = Cast<T>(step.gradients[variable].values);
  const ByteSlice slice = {Bytes(gradient).data(), Bytes(gradient).size()};
  const GradientSlices slices = {{&slice, 1}};
  ApplyInput input;
  input.dtype = scenario.dtype;
  input.learning_rate = scenario.learning_rate;
  input.powers = before.powers;
  input.gradients = {&slices, 1};
  input.old_value = input.new_value = Bytes(value);
  for (size_t i = 0; i < slots.size(); ++i) {
    input.old_slots[i] = input.new_slots[i] = Bytes(slots[i]);
  }

  ASSERT_OK(Optimizer(scenario.config).Apply(input));

  ExpectSame(value, step.after.variables[variable], "value");
  ASSERT_EQ(slots.size(), step.after.slots[variable].size());
  for (size_t i = 0; i < slots.size(); ++i) {
    ExpectSame(slots[i], step.after.slots[variable][i],
               "slot " + std::to_string(i));
  }
}

class OptimizerConformanceTest
    : public ::testing::TestWithParam<OptimizerScenario> {};

TEST_P(OptimizerConformanceTest, DenseUpdatesAreTensorFlowsBitForBit) {
  const OptimizerScenario& scenario = GetParam();
  int replayed = 0;
  OptimizerState before = scenario.initial;
  for (size_t s = 0; s < scenario.steps.size(); ++s) {
    const RecordedStep& step = scenario.steps[s];
    for (size_t v = 0; step.ok && v < step.gradients.size(); ++v) {
      SCOPED_TRACE("step " + std::to_string(s) + ", " +
                   scenario.variable_names[v]);
      if (step.gradients[v].kind != RecordedGradient::Kind::kDense) continue;
      scenario.dtype == DType::kFloat32
          ? Replay<float>(scenario, before, v, step)
          : Replay<double>(scenario, before, v, step);
      ++replayed;
    }
    before = step.after;
  }
  EXPECT_GT(replayed, 0);
}

TEST_P(OptimizerConformanceTest, PowersMoveOncePerSuccessfulStep) {
  const OptimizerScenario& scenario = GetParam();
  AdamPowers powers = InitialAdamPowers(scenario.config);
  EXPECT_EQ(powers, scenario.initial.powers);
  for (const RecordedStep& step : scenario.steps) {
    if (step.ok) powers = NextAdamPowers(scenario.config, powers);
    EXPECT_EQ(powers, step.after.powers);
  }
}

TEST_P(OptimizerConformanceTest, SlotsHaveTensorFlowsNames) {
  const OptimizerScenario& scenario = GetParam();
  for (size_t v = 0; v < scenario.variable_names.size(); ++v) {
    std::vector<std::string> names;
    for (const std::string& slot : SlotNames(scenario.config)) {
      names.push_back(SlotVariableName(scenario.variable_names[v], slot));
    }
    if (!scenario.slot_variables[v].empty()) {
      EXPECT_EQ(names, scenario.slot_variables[v]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recorded, OptimizerConformanceTest,
    ::testing::ValuesIn(ReadOptimizerScenarios(LOCKSTEP_OPTIMIZER_TRACE)),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep::testing
