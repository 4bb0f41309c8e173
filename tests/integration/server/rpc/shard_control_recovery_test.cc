// A chief that comes to a server again: after it was away itself, or when
// another server has lost what it had collected, or its state.

#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/shard_control_fixture.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kAttempt = 2'000'001;

class ShardControlRecoveryTest : public ShardControlFixture {
 protected:
  // As a chief does that has just started: from now on it is the newest.
  void TakeOver() {
    const auto epoch = TakeEpoch();
    ASSERT_OK(epoch);
    shard_.set_epoch(*epoch);
  }
  absl::StatusOr<v1::CreateShardResponse> Find(bool discard = false) {
    v1::CreateShardRequest request = shard_.CreateRequest();
    request.set_discard(discard);
    return Call(shard_.control(), &Stub::CreateShard, request);
  }
  absl::Status Open(int64_t step, int64_t attempt) {
    v1::ActivateRequest request;
    *request.mutable_chief() = shard_.Chief();
    request.set_global_step(step);
    request.set_attempt(attempt);
    v1::ExpiredWorker& expired = *request.add_expired();
    expired.set_worker(1);
    expired.set_incarnation(1);
    return Call(shard_.control(), &Stub::Activate, request).status();
  }
  absl::StatusOr<v1::PushResponse> Push(int64_t step, int64_t attempt) {
    return Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                ServedShard::PushRequest(step, attempt, 2));
  }
};

TEST_F(ShardControlRecoveryTest, ChiefFindsTheStepThatCanBeCommitted) {
  shard_.Open();
  shard_.Step(0, 1);
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 1)));
  ASSERT_OK(Push(1, 1));
  TakeOver();

  const auto found = Find();

  ASSERT_OK(found);
  EXPECT_TRUE(found->active());
  EXPECT_EQ(found->committed_step(), 1);
  EXPECT_EQ(found->prepared_step(), 2);
  ASSERT_OK(Open(1, /*attempt=*/0));
  shard_.FinishStep(1);  // nothing had to be pushed again
}

TEST_F(ShardControlRecoveryTest, OldChiefsCommitComesToNothing) {
  shard_.Open();
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));
  ASSERT_OK(Push(0, 1));
  ASSERT_OK(TakeEpoch());  // by another chief

  EXPECT_THAT(Commit(1, 1), StatusIs(absl::StatusCode::kAborted));

  EXPECT_THAT(shard_.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
}

TEST_F(ShardControlRecoveryTest,
       StepThatBeginsAnewTakesNothingOfTheOldAttempt) {
  shard_.Open();
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));
  ASSERT_OK(Push(0, 1));
  TakeOver();
  ASSERT_OK(Find());

  ASSERT_OK(Open(0, kAttempt));

  const auto old = Push(0, 1);
  ASSERT_OK(old);
  EXPECT_THAT(old->header().outcomes(), Each(v1::SUPERSEDED));
  EXPECT_THAT(Commit(1, 1), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(Push(0, kAttempt));
  shard_.FinishStep(0);
  EXPECT_THAT(shard_.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST_F(ShardControlRecoveryTest, ThoseThatHaveExpiredAreNotHeard) {
  shard_.Open();
  TakeOver();
  ASSERT_OK(Find());
  ASSERT_OK(Open(0, 0));

  EXPECT_THAT(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                   ServedShard::AnnounceRequest(1, 0)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ShardControlRecoveryTest, JobThatGoesBackLeavesNothingOfItsState) {
  shard_.Open();
  shard_.Step(0, 2);
  TakeOver();

  const auto found = Find(/*discard=*/true);

  ASSERT_OK(found);
  EXPECT_FALSE(found->active());
  EXPECT_EQ(found->committed_step(), -1);
  EXPECT_THAT(Push(1, 1), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_OK(Call(shard_.control(), &Stub::WriteParts, shard_.WriteRequest()));
  ASSERT_OK(Open(0, kAttempt));
  EXPECT_THAT(shard_.Values(), ElementsAre(5, 5, 5, 5, 5, 5, 5, 5, 2, 2));
}

TEST_F(ShardControlRecoveryTest, EditedJobFileOpensTheStateAgain) {
  shard_.Open();
  shard_.Step(0, 2);
  // Waits for the next step, and is ended with the shard that it waits in.
  auto token = std::async(std::launch::async, [this] {
    return Call(shard_.sync(), &v1::SyncService::Stub::TakeToken,
                ServedShard::TokenRequest(0, 1))
        .status();
  });
  TakeOver();
  v1::CreateShardRequest request = shard_.CreateRequest();
  request.mutable_job()->set_learning_rate(0.25);

  const auto found = Call(shard_.control(), &Stub::CreateShard, request);

  ASSERT_OK(found);
  EXPECT_THAT(token.get(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(found->active());
  EXPECT_EQ(found->committed_step(), 1);
  ASSERT_OK(Open(1, kAttempt));
  shard_.Step(1, 2);
  EXPECT_THAT(shard_.Values(), ElementsAre(-0.5, -0.5, -0.5, -0.5, -0.5, -0.5,
                                           -0.5, -0.5, 0.5, 0.5));
}

TEST_F(ShardControlRecoveryTest, WorkerThatTheChiefNeverHeardCanBeExpired) {
  shard_.Open();
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));
  v1::ExpireWorkerRequest request;
  *request.mutable_chief() = shard_.Chief();

  const auto expired = Call(shard_.control(), &Stub::ExpireWorker, request);

  ASSERT_OK(expired);
  EXPECT_TRUE(expired->held_announcement());
  EXPECT_EQ(expired->incarnation(), 1u);
  EXPECT_THAT(Push(0, 1), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::testing
