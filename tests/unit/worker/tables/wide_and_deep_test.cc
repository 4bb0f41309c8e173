#include "worker/tables/wide_and_deep.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"
#include "worker/tables/log_odds.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kDim = 2;
constexpr int64_t kHidden = 3;

// Two categories, one cross, one number.
ColumnLayout Layout() {
  return {.categorical = {"a", "b"},
          .crosses = {{0, 1}},
          .numeric = {"x"},
          .wide_rows = 10,
          .deep_rows = 5};
}

// Rows of either kind are shared between examples, one within an example too.
ColumnExamples Examples() {
  return {.labels = {true, false, true, false},
          .wide = {1, 4, 9, 1, 5, 7, 2, 4, 4, 0, 0, 0},
          .deep = {0, 3, 0, 4, 2, 3, 1, 1},
          .numeric = {0.5f, -1.25f, 2, 0}};
}

WideAndDeep MakeModel() {
  return WideAndDeep({.embedding_dim = kDim, .hidden_units = {kHidden}},
                     Layout(), Examples(), MakeBackend("cpu", {}).value());
}

// Values of all variables, in double precision.
using Values = std::vector<std::vector<double>>;

Values Fill(const WideAndDeep& model, ParameterMemory& memory) {
  Values values;
  uint64_t state = 7;
  for (size_t v = 0; v < model.variables().size(); ++v) {
    values.emplace_back();
    for (float& value : Floats(memory.value(v))) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<float>(state >> 40) / (1 << 23) - 1;
      values.back().push_back(value);
    }
  }
  return values;
}

// The mean loss of a batch, written down once more and in double precision.
double Loss(const std::vector<int64_t>& batch, const ParameterMemory& memory,
            const Values& values) {
  const ColumnExamples examples = Examples();
  const auto at = [&memory](size_t table, int64_t id) {
    const std::vector<int64_t>& ids = memory.rows(table).ids;
    return std::lower_bound(ids.begin(), ids.end(), id) - ids.begin();
  };
  double loss = 0;
  for (const int64_t e : batch) {
    double log_odds = values[6][0];
    for (int c = 0; c < 3; ++c) {
      log_odds += values[0][at(0, examples.wide[3 * e + c])];
    }
    std::vector<double> in;
    for (int c = 0; c < 2; ++c) {
      const auto row = at(1 + c, examples.deep[2 * e + c]);
      for (int d = 0; d < kDim; ++d) {
        in.push_back(values[1 + c][row * kDim + d]);
      }
    }
    in.push_back(examples.numeric[e]);
    for (int h = 0; h < kHidden; ++h) {
      double sum = values[4][h];
      for (size_t i = 0; i < in.size(); ++i) {
        sum += in[i] * values[3][i * kHidden + h];
      }
      log_odds += std::max(sum, 0.0) * values[5][h];
    }
    loss += CrossEntropy(examples.labels[e], log_odds);
  }
  return loss / static_cast<double>(batch.size());
}

TEST(WideAndDeepTest, VariablesAreTablesThenLayers) {
  const WideAndDeep model = MakeModel();
  std::vector<std::string> names;
  for (const VariableSpec& variable : model.variables()) {
    names.push_back(variable.name + ShapeString(variable.shape));
  }
  EXPECT_THAT(names, ElementsAre("wide/weights[10,1]", "embedding/a[5,2]",
                                 "embedding/b[5,2]", "hidden1/weights[5,3]",
                                 "hidden1/bias[3]", "logits/weights[3,1]",
                                 "logits/bias[1]"));
  EXPECT_TRUE(model.variables()[2].is_table());
  EXPECT_FALSE(model.variables()[3].is_table());
}

TEST(WideAndDeepTest, ABatchNeedsTheRowsOfItsExamples) {
  WideAndDeep model = MakeModel();
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({1, 0, 1}, 0, memory));
  EXPECT_THAT(memory.rows(0).ids, ElementsAre(1, 4, 5, 7, 9));
  EXPECT_THAT(memory.rows(1).ids, ElementsAre(0));
  EXPECT_THAT(memory.rows(2).ids, ElementsAre(3, 4));
}

TEST(WideAndDeepTest, GradientsAreThoseOfTheMeanLoss) {
  WideAndDeep model = MakeModel();
  const std::vector<int64_t> batch = {3, 0, 2, 1, 0};
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare(batch, 0, memory));
  Values values = Fill(model, memory);

  const auto result = model.Compute(memory);

  ASSERT_OK(result);
  EXPECT_NEAR(result->loss, Loss(batch, memory, values), 1e-6);
  EXPECT_EQ(result->examples, 5);
  for (size_t v = 0; v < values.size(); ++v) {
    const absl::Span<const float> gradients = Floats(memory.gradient(v));
    for (size_t i = 0; i < values[v].size(); ++i) {
      constexpr double kStep = 1e-5;
      values[v][i] += kStep;
      const double above = Loss(batch, memory, values);
      values[v][i] -= 2 * kStep;
      const double slope = (above - Loss(batch, memory, values)) / (2 * kStep);
      values[v][i] += kStep;
      EXPECT_NEAR(gradients[i], slope, 1e-5)
          << model.variables()[v].name << "[" << i << "]";
    }
  }
}

TEST(WideAndDeepTest, ABatchLeavesNothingForTheNext) {
  WideAndDeep model = MakeModel();
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({0, 1, 2, 3}, 0, memory));
  Fill(model, memory);
  ASSERT_OK(model.Compute(memory));
  ASSERT_OK(model.Prepare({2}, 0, memory));
  const Values values = Fill(model, memory);
  const auto first = model.Compute(memory);
  const auto again = model.Compute(memory);
  ASSERT_OK(first);
  ASSERT_OK(again);
  EXPECT_EQ(first->loss, again->loss);
  EXPECT_NEAR(first->loss, Loss({2}, memory, values), 1e-6);
  // Example 2 reads row 4 of the weights twice.
  const absl::Span<const float> wide = Floats(memory.gradient(0));
  EXPECT_FLOAT_EQ(wide[1], 2 * wide[0]);
}

}  // namespace
}  // namespace lockstep::worker
