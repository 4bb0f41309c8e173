#include "common/base/log_budget.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

int LinesOf(LogBudget& budget, int calls, absl::Time now) {
  int lines = 0;
  for (int i = 0; i < calls; ++i) lines += budget.Take(now) ? 1 : 0;
  return lines;
}

TEST(LogBudgetTest, LinesOfEachMinuteAreBounded) {
  LogBudget budget;
  const absl::Time now = absl::FromUnixSeconds(1000);

  EXPECT_EQ(LinesOf(budget, 1000, now), LogBudget::kLines);
  EXPECT_EQ(LinesOf(budget, 1000, now + absl::Seconds(59)), 0);
  EXPECT_EQ(LinesOf(budget, 1000, now + absl::Minutes(1)), LogBudget::kLines);
}

TEST(LogBudgetTest, FewerLinesMayBeAllowed) {
  LogBudget budget(1);
  const absl::Time now = absl::FromUnixSeconds(1000);

  EXPECT_EQ(LinesOf(budget, 10, now), 1);
  EXPECT_EQ(LinesOf(budget, 10, now + absl::Minutes(1)), 1);
}

}  // namespace
}  // namespace lockstep
