// State that a host finds, keeps, discards and removes.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard_host.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/shard_host_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

const TaskId kWorker1{TaskType::kWorker, 1};

using ShardHostStateTest = ShardHostFixture;

TEST_F(ShardHostStateTest, StateIsGivenUpOnlyWhenToldSo) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());

  const auto shard =
      host_.Create(job_, variables_, parts_, ShardHost::Keep::kNothing);

  ASSERT_OK(shard);
  EXPECT_FALSE((*shard)->active());
  EXPECT_EQ((*shard)->GetReport().committed_step, -1);
}

TEST_F(ShardHostStateTest, DelayedOrderToDiscardDoesNoHarm) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  ASSERT_OK(host_.FollowChief("job", 3));
  const auto discard = [this] {
    return host_.Create(job_, variables_, parts_, ShardHost::Keep::kNothing);
  };
  {
    const auto fresh = discard();
    ASSERT_OK(fresh);
    ASSERT_OK((*fresh)->Activate(4, {}));

    EXPECT_THAT(discard(), IsOkAndHolds(*fresh));
    EXPECT_TRUE((*fresh)->active());
  }

  ASSERT_OK(host_.FollowChief("job", 4));
  const auto again = discard();
  ASSERT_OK(again);
  EXPECT_FALSE((*again)->active());
}

TEST_F(ShardHostStateTest, ShardMadeInThisEpochIsNotDiscarded) {
  host_.SetJobId("job");
  const auto discard = [this] {
    return host_.Create(job_, variables_, parts_, ShardHost::Keep::kNothing);
  };
  ASSERT_OK(host_.FollowChief("job", 3));
  {
    const auto made = Create();
    ASSERT_OK(made);

    EXPECT_THAT(discard(), IsOkAndHolds(*made));
    ASSERT_OK((*made)->Activate(4, {}));
    EXPECT_THAT(discard(), IsOkAndHolds(*made));  // one that was delayed
  }

  ASSERT_OK(host_.FollowChief("job", 4));
  const auto again = discard();
  ASSERT_OK(again);
  EXPECT_FALSE((*again)->active());
}

TEST_F(ShardHostStateTest, EpochOutlivesAProcessThatHadNotOpenedItsState) {
  ASSERT_NO_FATAL_FAILURE(LeaveState(/*epoch=*/6));
  {
    ShardHost killed(
        {.task_index = 2, .incarnation = 6, .state_dir = temp_dir_.path()});
    killed.SetJobId("job");
    ASSERT_THAT(killed.TakeEpoch("job"), IsOkAndHolds(7));
  }

  host_.SetJobId("job");

  EXPECT_THAT(host_.TakeEpoch("job"), IsOkAndHolds(8));
}

TEST_F(ShardHostStateTest, SuccessorOfAKilledProcessGoesOnFromItsState) {
  ASSERT_NO_FATAL_FAILURE(LeaveState(/*epoch=*/6));

  host_.SetJobId("job");

  EXPECT_THAT(host_.CheckChief("job", 5), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(host_.TakeEpoch("job"), IsOkAndHolds(7));
  const auto shard = Create();
  ASSERT_OK(shard);
  EXPECT_FALSE((*shard)->active());
  EXPECT_EQ((*shard)->GetReport().committed_step, 0);
  EXPECT_THAT(host_.Admit("job", kWorker1, 1),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ShardHostStateTest, StateOfANewerChiefAsksForANewerEpoch) {
  ASSERT_OK(host_.FollowChief("job", 3));
  ASSERT_NO_FATAL_FAILURE(LeaveState(/*epoch=*/6));

  EXPECT_THAT(Create(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("epoch 6")));

  EXPECT_THAT(host_.TakeEpoch("job"), IsOkAndHolds(7));
  EXPECT_OK(Create());
}

TEST_F(ShardHostStateTest, ForeignStateIsRefusedAndStays) {
  ASSERT_NO_FATAL_FAILURE(LeaveState(/*epoch=*/6));
  host_.SetJobId("job");
  parts_[0].count = 2;

  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("layout")));

  EXPECT_TRUE(HasFile());
  parts_[0].count = 4;
  EXPECT_OK(Create());
}

TEST_F(ShardHostStateTest, SuccessorRemovesWhatAKilledProcessHasLeft) {
  ASSERT_NO_FATAL_FAILURE(LeaveState(/*epoch=*/6));
  EXPECT_TRUE(HasFile());

  EXPECT_OK(host_.RemoveState());

  EXPECT_FALSE(HasFile());
}

TEST_F(ShardHostStateTest, RemovedStateLeavesNoFile) {
  EXPECT_OK(host_.RemoveState());
  ASSERT_OK(Create());
  EXPECT_TRUE(HasFile());

  EXPECT_OK(host_.RemoveState());

  EXPECT_FALSE(HasFile());
  EXPECT_OK(host_.RemoveState());
}

}  // namespace
}  // namespace lockstep::server
