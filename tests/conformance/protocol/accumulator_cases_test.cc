// What follows from the rules of TensorFlow's accumulators, case by case.

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/compatible/gradient_accumulator.h"
#include "server/step/compatible/sparse_accumulator.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/gradient_builder.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Dense;
using ::lockstep::testing::Scalar;
using ::lockstep::testing::Sparse;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::Values;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

server::DenseSum::Options OneElement() {
  return {DType::kFloat32, std::vector<int64_t>{1}, server::Reduction::kMean};
}

TEST(AccumulatorCasesTest, D10StalenessIsFoundBeforeTheShape) {
  server::GradientAccumulator accumulator(OneElement());
  accumulator.SetGlobalStep(2);
  const Dense wrong({2}, {1, 2});

  const auto stale = accumulator.Apply(1, wrong);

  ASSERT_OK(stale);
  EXPECT_EQ(stale->outcome, server::ApplyOutcome::kStale);
  EXPECT_THAT(accumulator.Apply(2, wrong),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(accumulator.num_accumulated(), 0);
}

TEST(AccumulatorCasesTest, D11LargeTakeHoldsUpASmallOneUntilItIsCancelled) {
  server::GradientAccumulator accumulator(OneElement());
  EXPECT_THAT(accumulator.Take(1, 5).value(), IsEmpty());
  EXPECT_THAT(accumulator.Take(2, 1).value(), IsEmpty());
  EXPECT_THAT(accumulator.Apply(0, Scalar(7))->completed, IsEmpty());

  const auto completed = accumulator.Cancel(1);

  ASSERT_THAT(completed, SizeIs(2));
  EXPECT_TRUE(absl::IsCancelled(completed[0].status));
  EXPECT_EQ(completed[1].id, 2u);
  EXPECT_THAT(Values(completed[1].gradient), ElementsAre(7));
}

TEST(AccumulatorCasesTest, D13StepMayGoBack) {
  server::GradientAccumulator accumulator(OneElement());
  EXPECT_FALSE(accumulator.SetGlobalStep(5).went_backwards);
  EXPECT_TRUE(accumulator.SetGlobalStep(3).went_backwards);
  EXPECT_EQ(accumulator.Apply(3, Scalar(1))->outcome,
            server::ApplyOutcome::kAccepted);
}

TEST(AccumulatorCasesTest, D14GradientOfAStepToComeIsFresh) {
  server::GradientAccumulator accumulator(OneElement());
  EXPECT_EQ(accumulator.Apply(7, Scalar(1))->outcome,
            server::ApplyOutcome::kAccepted);
  EXPECT_EQ(accumulator.num_accumulated(), 1);
}

// Rows with their means.
std::vector<std::pair<int64_t, double>> MeanOf(
    server::SparseInput input, const std::vector<Sparse>& gradients) {
  server::SparseAccumulator accumulator(
      {DType::kFloat32, std::nullopt, server::Reduction::kMean, input});
  for (const Sparse& gradient : gradients) {
    EXPECT_OK(accumulator.Apply(0, gradient));
  }
  auto taken = accumulator.Take(1, static_cast<int64_t>(gradients.size()));
  EXPECT_OK(taken);
  std::vector<std::pair<int64_t, double>> rows;
  if (!taken.ok() || taken->size() != 1) return rows;
  const server::SparseGradient& mean = taken->front().gradient;
  const std::vector<double> values = Values(mean);
  for (size_t i = 0; i < values.size(); ++i) {
    rows.emplace_back(mean.indices[i], values[i]);
  }
  return rows;
}

TEST(AccumulatorCasesTest, D15RowIsDividedByTheNumberOfGradientsThatHaveIt) {
  for (const server::SparseInput input :
       {server::SparseInput::kAsSent, server::SparseInput::kCanonical}) {
    EXPECT_THAT(MeanOf(input, {Sparse({}, {0}, {}), Sparse({2}, {1}, {6})}),
                ElementsAre(Pair(2, 6)));
  }
}

// As TensorFlow merges them, the update of row 2 is 2 + 20, a sum, and of row 5
// a mean.
TEST(AccumulatorCasesTest, D16UnsortedRowsPairUpOnlyWhenCanonical) {
  const std::vector<Sparse> unsorted = {Sparse({5, 2}, {2}, {50, 20}),
                                        Sparse({2, 5}, {2}, {2, 5})};
  EXPECT_THAT(MeanOf(server::SparseInput::kAsSent, unsorted),
              ElementsAre(Pair(2, 2), Pair(5, 27.5), Pair(2, 20)));
  EXPECT_THAT(MeanOf(server::SparseInput::kCanonical, unsorted),
              ElementsAre(Pair(2, 11), Pair(5, 27.5)));

  const std::vector<Sparse> repeated = {Sparse({1, 1}, {2}, {1, 2}),
                                        Sparse({1}, {1}, {9})};
  EXPECT_THAT(MeanOf(server::SparseInput::kAsSent, repeated),
              ElementsAre(Pair(1, 5), Pair(1, 2)));
  EXPECT_THAT(MeanOf(server::SparseInput::kCanonical, repeated),
              ElementsAre(Pair(1, 6)));
}

}  // namespace
}  // namespace lockstep
