#include "common/clock.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

class ManualClock final : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::FromUnixSeconds(1000);
};

TEST(ClockTest, RealClockIsOneAndTellsThisCentury) {
  EXPECT_EQ(&Clock::Real(), &Clock::Real());

  EXPECT_GT(Clock::Real().Now(), absl::FromUnixSeconds(1'600'000'000));
  EXPECT_LT(Clock::Real().Now(), absl::FromUnixSeconds(4'000'000'000));
}

TEST(ClockTest, TestsDecideWhatTimeItIs) {
  ManualClock manual;
  const Clock& clock = manual;

  manual.now += absl::Hours(3);

  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1000) + absl::Hours(3));
}

}  // namespace
}  // namespace lockstep
