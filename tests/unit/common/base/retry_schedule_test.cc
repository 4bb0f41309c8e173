#include "common/base/retry_schedule.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Time kNow = absl::UnixEpoch();
constexpr absl::Duration kInstant = absl::Nanoseconds(1);

// Returns how long the schedule pauses `server` after a failure.
absl::Duration PauseAfterFailure(RetrySchedule& schedule, int server) {
  schedule.Failed(server, kNow);
  const absl::Duration pause = schedule.next() - kNow;
  EXPECT_THAT(schedule.TakeDue(kNow + pause), ElementsAre(server));
  return pause;
}

TEST(RetryScheduleTest, NobodyIsDueBeforeAFailure) {
  RetrySchedule schedule(2);

  EXPECT_EQ(schedule.next(), absl::InfiniteFuture());
  EXPECT_THAT(schedule.TakeDue(kNow), IsEmpty());
}

TEST(RetryScheduleTest, ServerIsDueOnceItsPauseIsOverAndOnlyOnce) {
  RetrySchedule schedule(2);
  const absl::Time due = kNow + RetrySchedule::kFirstPause;

  schedule.Failed(1, kNow);

  EXPECT_EQ(schedule.next(), due);
  EXPECT_THAT(schedule.TakeDue(due - kInstant), IsEmpty());
  EXPECT_THAT(schedule.TakeDue(due), ElementsAre(1));
  EXPECT_THAT(schedule.TakeDue(absl::UnixEpoch() + absl::Hours(1)), IsEmpty());
  EXPECT_EQ(schedule.next(), absl::InfiniteFuture());
}

TEST(RetryScheduleTest, PausesDoubleUpToTheLongest) {
  RetrySchedule schedule(1);

  for (int milliseconds : {50, 100, 200, 400, 800, 1000, 1000}) {
    EXPECT_EQ(PauseAfterFailure(schedule, 0), absl::Milliseconds(milliseconds));
  }
}

TEST(RetryScheduleTest, AnswerMakesTheNextPauseTheFirstAgain) {
  RetrySchedule schedule(1);
  for (int i = 0; i < 3; ++i) PauseAfterFailure(schedule, 0);

  schedule.Answered(0);

  EXPECT_EQ(PauseAfterFailure(schedule, 0), RetrySchedule::kFirstPause);
}

TEST(RetryScheduleTest, AnswerTakesTheServerOffTheSchedule) {
  RetrySchedule schedule(1);
  schedule.Failed(0, kNow);

  schedule.Answered(0);

  EXPECT_EQ(schedule.next(), absl::InfiniteFuture());
}

TEST(RetryScheduleTest, ServersHavePausesOfTheirOwn) {
  RetrySchedule schedule(3);
  for (int i = 0; i < 2; ++i) PauseAfterFailure(schedule, 2);

  schedule.Failed(2, kNow);
  schedule.Failed(0, kNow);

  EXPECT_EQ(schedule.next(), kNow + absl::Milliseconds(50));
  EXPECT_THAT(schedule.TakeDue(kNow + absl::Milliseconds(199)), ElementsAre(0));
  EXPECT_THAT(schedule.TakeDue(kNow + absl::Milliseconds(200)), ElementsAre(2));
}

TEST(RetryScheduleTest, ServersDueTogetherComeTogether) {
  RetrySchedule schedule(3);
  for (int server : {0, 1, 2}) schedule.Failed(server, kNow);

  EXPECT_THAT(schedule.TakeDue(absl::InfiniteFuture()), ElementsAre(0, 1, 2));
}

TEST(RetryScheduleTest, PauseLastsFromAFailureUntilTheServerIsDueOrAnswers) {
  RetrySchedule schedule(2);
  EXPECT_FALSE(schedule.Pauses(0, kNow));

  schedule.Failed(0, kNow);

  EXPECT_TRUE(schedule.Pauses(0, kNow));
  EXPECT_FALSE(schedule.Pauses(1, kNow));
  EXPECT_FALSE(schedule.Pauses(0, kNow + RetrySchedule::kFirstPause));
  schedule.Answered(0);
  EXPECT_FALSE(schedule.Pauses(0, kNow));
}

}  // namespace
}  // namespace lockstep
