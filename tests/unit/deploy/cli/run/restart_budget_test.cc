#include "deploy/cli/run/restart_budget.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

TEST(RestartBudgetTest, PausesDoubleUpToTheLongest) {
  RestartBudget budget(7);

  for (const double pause : {0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0}) {
    EXPECT_EQ(budget.Take(At(0)), At(pause));
  }
}

TEST(RestartBudgetTest, AllowsNoMoreThanItWasGiven) {
  RestartBudget budget(2);

  EXPECT_TRUE(budget.Take(At(0)).has_value());
  EXPECT_TRUE(budget.Take(At(1)).has_value());
  EXPECT_FALSE(budget.Take(At(2)).has_value());
  EXPECT_FALSE(budget.Take(At(599)).has_value());
}

TEST(RestartBudgetTest, ARestartCountsForTenMinutes) {
  RestartBudget budget(2);
  budget.Take(At(0));
  budget.Take(At(300));

  EXPECT_FALSE(budget.Take(At(599.9)).has_value());
  EXPECT_EQ(budget.Take(At(600)), At(601));
  EXPECT_FALSE(budget.Take(At(601)).has_value());
}

TEST(RestartBudgetTest, APauseIsShortAgainAfterAQuietTime) {
  RestartBudget budget(3);
  budget.Take(At(0));
  budget.Take(At(1));

  EXPECT_EQ(budget.Take(At(1000)), At(1000.5));
}

TEST(RestartBudgetTest, NothingIsAllowedWithoutABudget) {
  EXPECT_FALSE(RestartBudget(0).Take(At(0)).has_value());
}

}  // namespace
}  // namespace lockstep::cli
