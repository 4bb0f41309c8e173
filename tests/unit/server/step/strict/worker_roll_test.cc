#include "server/step/strict/worker_roll.h"

#include "common/wire/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

Pass PassInRoll(int worker, uint64_t incarnation, int64_t pass = 1) {
  return {worker, incarnation, 0, pass, 0};
}

TEST(WorkerRollTest, WorkersOfTheJobTakePartUntilOthersAreNamed) {
  WorkerRoll roll(2);
  EXPECT_THAT(roll.CheckTakesPart(PassInRoll(1, 1)), IsOk());
  EXPECT_THAT(roll.CheckTakesPart(PassInRoll(2, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("worker 2 is none of the 2 replicas")));
  EXPECT_FALSE(roll.TakesPart(-1));

  roll.SetWorkers({1, 5, 7});

  EXPECT_EQ(roll.count(), 3);
  EXPECT_TRUE(roll.TakesPart(5));
  EXPECT_FALSE(roll.TakesPart(0));
  // Not kInvalidArgument, with which its process would end.
  EXPECT_THAT(roll.CheckTakesPart(PassInRoll(0, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("worker 0 is none of the 3 workers that take "
                                 "part now; register again")));
}

TEST(WorkerRollTest, OlderPassAndOlderIncarnationAreKnown) {
  WorkerRoll roll(2);
  EXPECT_TRUE(roll.Note(PassInRoll(0, 1, 3), false));
  EXPECT_TRUE(roll.Note(PassInRoll(0, 1, 3), false));
  EXPECT_TRUE(roll.Note(PassInRoll(0, 1, 3), true));
  EXPECT_FALSE(roll.Note(PassInRoll(0, 1, 3), false));
  EXPECT_FALSE(roll.Note(PassInRoll(0, 1, 2), true));
  EXPECT_TRUE(roll.Note(PassInRoll(0, 2, 1), false));

  const absl::Status replaced = roll.CheckIncarnation(PassInRoll(0, 1, 9));

  EXPECT_THAT(replaced, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("incarnation 2 is newer than 1")));
  EXPECT_EQ(NewestIncarnationOf(replaced), 2u);
  EXPECT_EQ(roll.NewestIncarnation(0), 2u);
  EXPECT_EQ(roll.NewestIncarnation(1), 0u);
}

TEST(WorkerRollTest, DeadIncarnationIsReplacedByOneThatHasNotCalled) {
  WorkerRoll roll(1);
  roll.Note(PassInRoll(0, 4), false);

  EXPECT_EQ(roll.Expire(0, 4), 5u);
  EXPECT_EQ(roll.Expire(0, 2), 5u);

  EXPECT_TRUE(roll.IsReplaced(PassInRoll(0, 4)));
  EXPECT_FALSE(roll.IsReplaced(PassInRoll(0, 5)));
  EXPECT_EQ(roll.NewestIncarnation(0), 4u);
}

TEST(WorkerRollTest, StepThatHasNotBegunIsRefused) {
  Pass pass = PassInRoll(0, 1);
  pass.local_step = 3;
  EXPECT_THAT(CheckBegun(pass, 3), IsOk());
  EXPECT_THAT(CheckBegun(pass, 2),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("register with the chief again")));
}

}  // namespace
}  // namespace lockstep::server
