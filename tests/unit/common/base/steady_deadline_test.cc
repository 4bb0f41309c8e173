#include "common/base/steady_deadline.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

using std::chrono::steady_clock;

TEST(SteadyDeadlineTest, ATimeoutEndsAfterItsTime) {
  const auto before = steady_clock::now();
  const auto deadline = SteadyDeadline(absl::Minutes(5));
  EXPECT_GE(deadline, before + std::chrono::minutes(5));
  EXPECT_LE(deadline, steady_clock::now() + std::chrono::minutes(5));
}

TEST(SteadyDeadlineTest, TimeoutsThatDoNotFitTheClockEndLate) {
  for (const absl::Duration timeout :
       {absl::InfiniteDuration(), absl::Hours(24 * 365 * 300)}) {
    EXPECT_GT(SteadyDeadline(timeout),
              steady_clock::now() + std::chrono::hours(24 * 364));
  }
}

TEST(SteadyDeadlineTest, ATimeoutBelowZeroHasEnded) {
  // Before the clock is read: a compiler may compute arguments in any order.
  const auto ended = SteadyDeadline(absl::ZeroDuration());
  EXPECT_LE(ended, steady_clock::now());
  EXPECT_LT(SteadyDeadline(-absl::Seconds(1)), steady_clock::now());
  EXPECT_LT(SteadyDeadline(-absl::InfiniteDuration()), steady_clock::now());
}

}  // namespace
}  // namespace lockstep
