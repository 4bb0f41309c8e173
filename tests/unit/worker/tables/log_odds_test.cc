#include "worker/tables/log_odds.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(LogOddsTest, OtherLabelsThanOneAndZeroOrMinusOneAreRefused) {
  EXPECT_THAT(BinaryLabel(1), IsOkAndHolds(true));
  EXPECT_THAT(BinaryLabel(0), IsOkAndHolds(false));
  EXPECT_THAT(BinaryLabel(-1), IsOkAndHolds(false));
  for (const double label : {2.0, 0.5, -2.0, std::nan("")}) {
    EXPECT_THAT(BinaryLabel(label),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("must be 1 for one class")));
  }
}

TEST(LogOddsTest, TheLossIsThatOfTheRightClassAndNeverOverflows) {
  EXPECT_NEAR(CrossEntropy(true, 1), -std::log(Probability(1)), 1e-15);
  EXPECT_NEAR(CrossEntropy(false, 1), -std::log(1 - Probability(1)), 1e-15);
  EXPECT_EQ(CrossEntropy(false, 1000), 1000);
  EXPECT_EQ(CrossEntropy(true, 1000), 0);
  EXPECT_EQ(CrossEntropy(true, -1000), 1000);
}

TEST(LogOddsTest, TheLossGrowsByTheProbabilityMinusTheLabel) {
  for (const bool label : {false, true}) {
    for (const double z : {-3.0, 0.0, 0.5}) {
      const double slope =
          (CrossEntropy(label, z + 1e-6) - CrossEntropy(label, z - 1e-6)) /
          2e-6;
      EXPECT_NEAR(Probability(z) - label, slope, 1e-8);
    }
  }
}

TEST(LogOddsTest, AScoreIsTheMeanOverAll) {
  LogOddsScore score;
  score.Add(2, true);
  score.Add(1, false);
  score.Add(-1, false);
  const TableScore mean = score.Get();
  EXPECT_NEAR(mean.loss,
              (std::log1p(std::exp(-2)) + std::log1p(std::exp(1)) +
               std::log1p(std::exp(-1))) /
                  3,
              1e-12);
  EXPECT_NEAR(mean.accuracy, 2.0 / 3, 1e-12);
  EXPECT_EQ(mean.examples, 3);
  EXPECT_THAT(mean.auc, Optional(1.0));
}

}  // namespace
}  // namespace lockstep::worker
