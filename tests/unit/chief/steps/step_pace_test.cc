#include "chief/steps/step_pace.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

constexpr absl::Time kNow = absl::UnixEpoch();

// The pace of a job after 100 steps that took `of_step` each.
StepPace PaceOf(absl::Duration of_step) {
  StepPace pace;
  for (int64_t step = 0; step <= 100; ++step) {
    pace.Stepped(step, kNow + step * of_step);
  }
  return pace;
}

TEST(StepPaceTest, NothingIsKnownAtFirst) {
  StepPace pace;

  EXPECT_EQ(pace.Ahead(), StepPace::kFewest);
  EXPECT_EQ(pace.Pause(100), absl::ZeroDuration());
  pace.Stepped(7, kNow);
  EXPECT_EQ(pace.Ahead(), StepPace::kFewest);
  EXPECT_EQ(pace.Pause(100), absl::ZeroDuration());
}

TEST(StepPaceTest, SlowStepsAreGrantedFewAtATimeAndHeardOfEach) {
  const StepPace pace = PaceOf(absl::Milliseconds(150));

  EXPECT_EQ(pace.Ahead(), StepPace::kFewest);
  EXPECT_EQ(pace.Pause(102), absl::ZeroDuration());
}

TEST(StepPaceTest, ShortStepsAreHeardOfNowAndThen) {
  const StepPace pace = PaceOf(absl::Microseconds(200));

  EXPECT_EQ(pace.Ahead(), StepPace::kMost);
  EXPECT_EQ(pace.Pause(100 + 64), StepPace::kLongestPause);
}

TEST(StepPaceTest, PauseIsOverBeforeTheServerHasToWait) {
  const StepPace pace = PaceOf(absl::Microseconds(200));

  EXPECT_EQ(pace.Pause(110), absl::Milliseconds(1));
  EXPECT_EQ(pace.Pause(100), absl::ZeroDuration());
  EXPECT_EQ(pace.Pause(90), absl::ZeroDuration());
}

TEST(StepPaceTest, StepsThatBecomeSlowAreNoticedAtOnce) {
  StepPace pace = PaceOf(absl::Microseconds(200));

  pace.Stepped(101, kNow + absl::Seconds(1));

  EXPECT_EQ(pace.Ahead(), StepPace::kFewest);
}

TEST(StepPaceTest, SeveralStepsAtATimeCountAsMany) {
  StepPace pace;
  pace.Stepped(0, kNow);

  pace.Stepped(10, kNow + absl::Milliseconds(20));

  EXPECT_EQ(pace.Ahead(), 10);
}

TEST(StepPaceTest, StepThatWentBackIsNoDuration) {
  StepPace pace = PaceOf(absl::Milliseconds(2));

  pace.Stepped(50, kNow + absl::Seconds(9));

  EXPECT_EQ(pace.Ahead(), 10);
}

TEST(StepPaceTest, ClockThatStandsStillIsNoTrouble) {
  EXPECT_EQ(PaceOf(absl::ZeroDuration()).Ahead(), StepPace::kMost);
  EXPECT_EQ(PaceOf(absl::ZeroDuration()).Pause(200), absl::ZeroDuration());
}

}  // namespace
}  // namespace lockstep::chief
