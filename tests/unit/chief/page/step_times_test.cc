#include "chief/page/step_times.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(StepTimesTest, QuantilesAreThoseOfTheStepsSinceTheLastCall) {
  StepTimes times;
  absl::Time now = kStart;
  times.Begin(0, now);
  for (int step = 1; step <= 100; ++step) {
    now += step % 50 == 0 ? absl::Seconds(2) : absl::Milliseconds(10);
    times.Reach(step, now);
  }
  const auto quantiles = times.Take();
  ASSERT_TRUE(quantiles.has_value());
  EXPECT_NEAR(absl::ToDoubleSeconds(quantiles->median), 0.01, 0.01 * 0.03);
  EXPECT_NEAR(absl::ToDoubleSeconds(quantiles->p99), 2, 2 * 0.03);
  EXPECT_FALSE(times.Take().has_value());
  times.Reach(101, now + absl::Seconds(1));
  const auto later = times.Take();
  ASSERT_TRUE(later.has_value());
  EXPECT_NEAR(absl::ToDoubleSeconds(later->median), 1, 0.03);
  EXPECT_NEAR(absl::ToDoubleSeconds(later->p99), 1, 0.03);
}

TEST(StepTimesTest, StepsThatComeTogetherShareTheirTime) {
  StepTimes times;
  times.Begin(10, kStart);
  EXPECT_EQ(times.Reach(14, kStart + absl::Milliseconds(8)),
            absl::Milliseconds(2));
}

TEST(StepTimesTest, AJobThatGoesBackHasNoTimeForTheWay) {
  StepTimes times;
  times.Begin(10, kStart);
  times.Begin(3, kStart + absl::Seconds(60));
  EXPECT_EQ(times.Reach(4, kStart + absl::Seconds(61)), absl::Seconds(1));
  EXPECT_EQ(times.Reach(2, kStart + absl::Seconds(62)), std::nullopt);
  EXPECT_EQ(times.step(), 2);
}

TEST(StepTimesTest, ExtremeTimesAreCounted) {
  StepTimes times;
  times.Begin(0, kStart);
  times.Reach(1, kStart);
  EXPECT_LT(times.Take()->median, absl::Microseconds(2));
  times.Reach(2, kStart + absl::Hours(1000));
  EXPECT_GT(times.Take()->median, absl::Hours(1));
}

}  // namespace
}  // namespace lockstep::chief
