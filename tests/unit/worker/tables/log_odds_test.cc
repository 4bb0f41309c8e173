#include "worker/tables/log_odds.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::Optional;

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
