#include "common/base/clock.h"

#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ManualClock;

TEST(ClockTest, RealClockIsOneAndTellsThisCentury) {
  EXPECT_EQ(&Clock::Real(), &Clock::Real());

  EXPECT_GT(Clock::Real().Now(), absl::FromUnixSeconds(1'600'000'000));
  EXPECT_LT(Clock::Real().Now(), absl::FromUnixSeconds(4'000'000'000));
}

TEST(ClockTest, TestsDecideWhatTimeItIs) {
  ManualClock manual;
  const Clock& clock = manual;
  const absl::Time before = clock.Now();

  manual.Advance(absl::Hours(3));

  EXPECT_EQ(clock.Now(), before + absl::Hours(3));
}

}  // namespace
}  // namespace lockstep
