#include "common/base/backoff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Time kNow = absl::UnixEpoch();
constexpr absl::Duration kInstant = absl::Nanoseconds(1);

// Returns how long the schedule pauses `server` after a failure.
absl::Duration PauseAfterFailure(Backoff& schedule, int server) {
  schedule.Failed(server, kNow);
  const absl::Duration pause = schedule.next() - kNow;
  EXPECT_THAT(schedule.TakeDue(kNow + pause), ElementsAre(server));
  return pause;
}

TEST(BackoffTest, NoServerIsDueBeforeAFailure) {
  Backoff schedule(2);

  EXPECT_EQ(schedule.next(), absl::InfiniteFuture());
  EXPECT_THAT(schedule.TakeDue(kNow), IsEmpty());
}

TEST(BackoffTest, ServerIsDueOnceItsPauseIsOverAndOnlyOnce) {
  Backoff schedule(2);
  const absl::Time due = kNow + Backoff::kFirstPause;

  schedule.Failed(1, kNow);

  EXPECT_EQ(schedule.next(), due);
  EXPECT_THAT(schedule.TakeDue(due - kInstant), IsEmpty());
  EXPECT_THAT(schedule.TakeDue(due), ElementsAre(1));
  EXPECT_THAT(schedule.TakeDue(absl::UnixEpoch() + absl::Hours(1)), IsEmpty());
  EXPECT_EQ(schedule.next(), absl::InfiniteFuture());
}

TEST(BackoffTest, PausesDoubleUpToTheLongest) {
  Backoff schedule(1);

  for (int milliseconds : {50, 100, 200, 400, 800, 1000, 1000}) {
    EXPECT_EQ(PauseAfterFailure(schedule, 0), absl::Milliseconds(milliseconds));
  }
}

TEST(BackoffTest, AnswerMakesTheNextPauseTheFirstAgain) {
  Backoff schedule(1);
  for (int i = 0; i < 3; ++i) PauseAfterFailure(schedule, 0);

  schedule.Answered(0);

  EXPECT_EQ(PauseAfterFailure(schedule, 0), Backoff::kFirstPause);
}

TEST(BackoffTest, AnswerTakesTheServerOffTheSchedule) {
  Backoff schedule(1);
  schedule.Failed(0, kNow);

  schedule.Answered(0);

  EXPECT_EQ(schedule.next(), absl::InfiniteFuture());
}

TEST(BackoffTest, ServersHavePausesOfTheirOwn) {
  Backoff schedule(3);
  for (int i = 0; i < 2; ++i) PauseAfterFailure(schedule, 2);

  schedule.Failed(2, kNow);
  schedule.Failed(0, kNow);

  EXPECT_EQ(schedule.next(), kNow + absl::Milliseconds(50));
  EXPECT_THAT(schedule.TakeDue(kNow + absl::Milliseconds(199)), ElementsAre(0));
  EXPECT_THAT(schedule.TakeDue(kNow + absl::Milliseconds(200)), ElementsAre(2));
}

TEST(BackoffTest, ServersDueTogetherComeTogether) {
  Backoff schedule(3);
  for (int server : {0, 1, 2}) schedule.Failed(server, kNow);

  EXPECT_THAT(schedule.TakeDue(absl::InfiniteFuture()), ElementsAre(0, 1, 2));
}

TEST(BackoffTest, PauseLastsFromAFailureUntilTheServerIsDueOrAnswers) {
  Backoff schedule(2);
  EXPECT_FALSE(schedule.Pauses(0, kNow));

  schedule.Failed(0, kNow);

  EXPECT_TRUE(schedule.Pauses(0, kNow));
  EXPECT_FALSE(schedule.Pauses(1, kNow));
  EXPECT_FALSE(schedule.Pauses(0, kNow + Backoff::kFirstPause));
  schedule.Answered(0);
  EXPECT_FALSE(schedule.Pauses(0, kNow));
}

}  // namespace
}  // namespace lockstep
