#include "common/rpc/deadline.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(DeadlineTest, ClockIsTheSteadyOne) {
  EXPECT_EQ(DeadlineIn(absl::Seconds(1)).clock_type, GPR_CLOCK_MONOTONIC);
  EXPECT_EQ(DeadlineIn(absl::InfiniteDuration()).clock_type,
            GPR_CLOCK_MONOTONIC);
}

TEST(DeadlineTest, LiesTheDurationAhead) {
  const gpr_timespec before = gpr_now(GPR_CLOCK_MONOTONIC);
  const gpr_timespec deadline = DeadlineIn(absl::Milliseconds(2500));
  const gpr_timespec after = gpr_now(GPR_CLOCK_MONOTONIC);

  const gpr_timespec length = gpr_time_from_millis(2500, GPR_TIMESPAN);
  EXPECT_GE(gpr_time_cmp(deadline, gpr_time_add(before, length)), 0);
  EXPECT_LE(gpr_time_cmp(deadline, gpr_time_add(after, length)), 0);
}

TEST(DeadlineTest, NoTimeIsNowAndInfinityIsNever) {
  const gpr_timespec at_once = DeadlineIn(absl::ZeroDuration());
  EXPECT_LE(gpr_time_cmp(at_once, gpr_now(GPR_CLOCK_MONOTONIC)), 0);
  EXPECT_EQ(gpr_time_cmp(DeadlineIn(absl::InfiniteDuration()),
                         gpr_inf_future(GPR_CLOCK_MONOTONIC)),
            0);
}

}  // namespace
}  // namespace lockstep
