// On ps task 0 its gate alone says what has been committed, and elsewhere the
// chief.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// One gradient a step, two workers, two parts; step 1 is prepared.
class StrictEngineCommitTest : public ::testing::Test {
 protected:
  static constexpr int kParts = 2;

  StrictEngineCommitTest() {
    gate_.Activate(0);
    EXPECT_OK(gate_.Announce({0, 1, 0, 1, 0}));
    EXPECT_OK(Push(0));
    updater_log_ = updater_.log();
  }

  absl::StatusOr<ShardAnswers> Push(int64_t step) {
    return shard_.AddPush(
        1, PushOf({0, 1, step, step + 1, 0}, 1, 0, kParts, 1.0f));
  }
  // Step 1 is prepared, as before, and only an order makes it the committed
  // one.
  void ExpectUntouched() {
    EXPECT_EQ(shard_.step(), 0);
    EXPECT_THAT(updater_.log(), updater_log_);
    EXPECT_OK(shard_.CheckCommit(1, 1));
  }

  FakePartUpdater updater_{kParts};
  StrictGate gate_{{.replicas_to_aggregate = 1, .total_num_replicas = 2}};
  StrictEngine shard_{
      {.replicas_to_aggregate = 1, .total_num_replicas = 2, .gate = &gate_},
      updater_};
  std::vector<std::string> updater_log_;
};

TEST_F(StrictEngineCommitTest, PushOfTheNextStepIsRefusedAndCommitsNothing) {
  EXPECT_THAT(Push(1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("step 1 is not committed; this server is at "
                                 "0")));

  ExpectUntouched();
}

TEST_F(StrictEngineCommitTest, ReaderOfTheNextStepCommitsNothing) {
  EXPECT_THAT(shard_.CheckReached(1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(shard_.AwaitsCommit(1));
  shard_.LearnCommitted(1);

  ExpectUntouched();
}

TEST_F(StrictEngineCommitTest, TakeOfTheNextStepIsRefusedAndCommitsNothing) {
  EXPECT_THAT(shard_.Take(9, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("take of step 1 from a server at step 0")));

  ExpectUntouched();
}

TEST_F(StrictEngineCommitTest, AttemptOfTheNextStepCommitsNothing) {
  EXPECT_THAT(shard_.StartAttempt(1, 2).pushes, IsEmpty());

  ExpectUntouched();
}

TEST_F(StrictEngineCommitTest,
       WorkerWithATokenIsServedBeforeTheCommitHasEnded) {
  // A worker may ask as soon as the gate has committed; the values follow.
  ASSERT_OK(gate_.Commit(1, 1));

  const auto pushed = Push(1);

  ASSERT_OK(pushed);
  EXPECT_THAT(pushed->pushes, SizeIs(1));
  EXPECT_EQ(shard_.step(), 1);
  EXPECT_OK(shard_.Commit(1, 1));
}

TEST_F(StrictEngineCommitTest, OnlyTheStepsSetFillsAPlace) {
  ASSERT_OK(gate_.Commit(1, 1));
  ASSERT_OK(shard_.Commit(1, 1));
  ASSERT_OK(gate_.Announce({1, 1, 1, 2, 0}));  // worker 1 is selected
  ASSERT_OK(gate_.Announce({0, 1, 1, 2, 0}));  // worker 0 is not needed

  const auto other = Push(1);

  ASSERT_OK(other);
  ASSERT_THAT(other->pushes, SizeIs(1));
  EXPECT_THAT(other->pushes[0].outcomes, Each(PushOutcome::kSuperseded));
  EXPECT_EQ(shard_.arrivals().open_parts, kParts);
  const auto member =
      shard_.AddPush(2, PushOf({1, 1, 1, 2, 0}, 1, 0, kParts, 2.0f));
  ASSERT_OK(member);
  ASSERT_THAT(member->pushes, SizeIs(1));
  EXPECT_THAT(member->pushes[0].outcomes, Each(PushOutcome::kAccepted));
}

// The same on a server that is not ps task 0.
class OtherServerCommitTest : public ::testing::Test {
 protected:
  OtherServerCommitTest() {
    EXPECT_OK(Push(0));
    EXPECT_TRUE(shard_.AwaitsCommit(1));
  }

  absl::StatusOr<ShardAnswers> Push(int64_t step) {
    return shard_.AddPush(1, PushOf({0, 1, step, step + 1, 0}, 1, 0, 2, 1.0f));
  }

  FakePartUpdater updater_{2};
  StrictEngine shard_{{.replicas_to_aggregate = 1, .total_num_replicas = 2},
                      updater_};
};

TEST_F(OtherServerCommitTest, WorkersWordCommitsNothing) {
  const auto retry = StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("the chief has not said yet"));
  EXPECT_THAT(shard_.CheckReached(1), retry);
  EXPECT_THAT(Push(1), retry);

  EXPECT_EQ(shard_.step(), 0);
  EXPECT_OK(shard_.CheckCommit(1, 1));
  EXPECT_THAT(shard_.CheckReached(2),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(OtherServerCommitTest, WorkersAreServedAfterTheChiefsTake) {
  ASSERT_OK(shard_.Take(9, 1));

  EXPECT_FALSE(shard_.AwaitsCommit(1));
  EXPECT_OK(shard_.CheckReached(1));
  EXPECT_OK(Push(1));
}

TEST_F(OtherServerCommitTest, NothingIsAwaitedOfAnAttemptGivenUp) {
  shard_.StartAttempt(0, 2);

  EXPECT_FALSE(shard_.AwaitsCommit(1));
  EXPECT_THAT(shard_.CheckReached(1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::server
