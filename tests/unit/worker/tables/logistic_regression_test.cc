#include "worker/tables/logistic_regression.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

SparseExamples Examples() {
  SparseExamples examples;
  EXPECT_OK(ParseLibsvm("1 2:1 9:2\n0 2:3\n", "text", {1, 10}, examples));
  return examples;
}

TEST(LogisticRegressionTest, ABatchNeedsTheRowsOfItsFeatures) {
  LogisticRegression model(Examples(), 10, RowCut::kMod);
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({1, 0, 1}, 0, memory));
  EXPECT_THAT(memory.rows(0).ids, ElementsAre(1, 8));
}

TEST(LogisticRegressionTest, GradientsAreThoseOfTheMeanLoss) {
  LogisticRegression model(Examples(), 10, RowCut::kDiv);
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({0, 1}, 0, memory));
  const absl::Span<float> weights = Floats(memory.value(0));
  const auto loss_at = [&](size_t i, float change) {
    weights[i] += change;
    const double loss = model.Compute(memory)->loss;
    weights[i] -= change;
    return loss;
  };
  weights[0] = 0.3f;
  weights[1] = -0.2f;
  Floats(memory.value(1))[0] = 0.1f;

  for (size_t i = 0; i < 2; ++i) {
    const double slope = (loss_at(i, 1e-2f) - loss_at(i, -1e-2f)) / 2e-2;
    ASSERT_OK(model.Compute(memory));
    EXPECT_THAT(Floats(memory.gradient(0))[i],
                FloatNear(static_cast<float>(slope), 1e-3f));
  }
  const double error = 1 / (1 + std::exp(-(0.1 + 0.3 - 0.4))) - 1 +
                       1 / (1 + std::exp(-(0.1 + 0.9)));
  EXPECT_THAT(Floats(memory.gradient(1))[0],
              FloatNear(static_cast<float>(error / 2), 1e-6f));
}

TEST(LogisticRegressionTest, AGrowingTableHasRowsOfAnyFeature) {
  SparseExamples examples;
  ASSERT_OK(ParseLibsvm("1 2:1 9000000000000000000:2\n", "text",
                        {1, std::numeric_limits<int64_t>::max() - 1},
                        examples));
  LogisticRegression model(std::move(examples), 10, RowCut::kKey);
  EXPECT_TRUE(model.variables()[0].grows());
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({0}, 0, memory));
  EXPECT_THAT(memory.rows(0).ids, ElementsAre(1, 8999999999999999999));
}

}  // namespace
}  // namespace lockstep::worker
