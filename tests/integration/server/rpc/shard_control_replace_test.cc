// What the chief asks about a member that holds up its step.

#include <chrono>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/shard_control_service.h"
#include "tests/integration/server/rpc/shard_control_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// The set is the first of two workers.
class ShardControlReplaceTest : public ShardControlFixture {
 protected:
  ShardControlReplaceTest() {
    shard_.Open();
    EXPECT_EQ(Announce(0), v1::SELECTED);
  }

  v1::AnnounceDecision Announce(int worker) {
    auto answer = Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                       ServedShard::AnnounceRequest(worker, 0));
    EXPECT_OK(answer);
    return answer.ok() ? answer->decision() : v1::ANNOUNCE_DECISION_UNSPECIFIED;
  }
  // Worker 1 waits with its gradient when this returns.
  std::future<absl::StatusOr<v1::TakeTokenResponse>> StartWait() {
    auto call = std::async(std::launch::async, [this] {
      return Call(shard_.sync(), &v1::SyncService::Stub::TakeToken,
                  ServedShard::TokenRequest(1, 0));
    });
    while ((*shard_.host().shard())->gate()->WaitingWorkers().empty()) {
      std::this_thread::yield();
    }
    return call;
  }
  absl::StatusOr<v1::ReplaceMemberResponse> Replace() {
    v1::ReplaceMemberRequest request;
    *request.mutable_chief() = shard_.Chief();
    request.set_worker(0);
    request.set_attempt(1);
    return Call(shard_.control(), &Stub::ReplaceMember, request);
  }
  absl::StatusOr<v1::PushResponse> Push(int worker, int64_t attempt) {
    v1::PushRequest request = ServedShard::PushRequest(0, attempt, 2);
    *request.mutable_header()->mutable_identity() = ServedShard::Worker(worker);
    return Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                request);
  }
};

TEST_F(ShardControlReplaceTest, OneThatWaitsPushesInstead) {
  ASSERT_EQ(Announce(1), v1::NOT_NEEDED);
  auto wait = StartWait();

  const auto replaced = Replace();

  ASSERT_OK(replaced);
  EXPECT_TRUE(replaced->replaced());
  EXPECT_EQ(replaced->by(), 1);
  EXPECT_EQ(replaced->attempt(), 2);
  const auto redo = wait.get();
  ASSERT_OK(redo);
  EXPECT_EQ(redo->outcome(), v1::TOKEN_REDO);
  EXPECT_EQ(redo->attempt(), 2);
  const auto late = Push(0, 1);
  ASSERT_OK(late);
  EXPECT_THAT(late->header().outcomes(), Each(v1::SUPERSEDED));
  const auto pushed = Push(1, 2);
  ASSERT_OK(pushed);
  EXPECT_THAT(pushed->header().outcomes(), Each(v1::ACCEPTED));
  EXPECT_OK(Commit(1, 2));
  EXPECT_EQ(Announce(0), v1::TOO_LATE);
}

TEST_F(ShardControlReplaceTest, RepeatingItChangesNothing) {
  Announce(1);
  auto wait = StartWait();
  ASSERT_OK(Replace());
  ASSERT_OK(wait.get());

  const auto again = Replace();

  ASSERT_OK(again);
  EXPECT_FALSE(again->replaced());
  EXPECT_EQ(again->attempt(), 2);
}

TEST_F(ShardControlReplaceTest, WithoutAWaitingBackupTheStepGoesOn) {
  const auto replaced = Replace();

  ASSERT_OK(replaced);
  EXPECT_FALSE(replaced->replaced());
  EXPECT_EQ(replaced->attempt(), 1);
  const auto pushed = Push(0, 1);
  ASSERT_OK(pushed);
  EXPECT_THAT(pushed->header().outcomes(), Each(v1::ACCEPTED));
}

TEST_F(ShardControlReplaceTest, LongTakeSaysWhoseGradientsAreIn) {
  v1::PushRequest one_part = ServedShard::PushRequest(0, 1, 2);
  one_part.mutable_header()->mutable_parts()->set_num_parts(1);
  one_part.mutable_payload()->resize(16);
  ASSERT_OK(
      Call(shard_.parameters(), &v1::ParameterService::Stub::Push, one_part));
  auto call = std::async(std::launch::async, [&] {
    return Call(shard_.control(), &Stub::TakeAndApply, shard_.TakeRequest(0));
  });
  while (call.wait_for(std::chrono::milliseconds(1)) !=
         std::future_status::ready) {
    shard_.AnswerWaits();
  }

  const auto answer = call.get();

  ASSERT_OK(answer);
  EXPECT_EQ(answer->attempt(), 1);
  EXPECT_EQ(answer->open_parts(), 2);  // one gradient is all a part needs
  EXPECT_TRUE(answer->pushed().empty());
  EXPECT_THAT(answer->announced_workers(), ElementsAre(0));
}

// A server that was out of reach when the attempt began.
TEST(TakeTest, BeginsTheAttemptThatItNames) {
  ServedShard shard(/*task_index=*/1);
  shard.Open();
  const auto push = [&](int64_t attempt) {
    return Call(shard.parameters(), &v1::ParameterService::Stub::Push,
                ServedShard::PushRequest(0, attempt, 2));
  };
  EXPECT_THAT(push(3), StatusIs(absl::StatusCode::kUnavailable));
  auto call = std::async(std::launch::async, [&] {
    v1::TakeAndApplyRequest take = shard.TakeRequest(0);
    take.set_attempt(3);
    return Call(shard.control(), &v1::ShardControlService::Stub::TakeAndApply,
                take);
  });

  absl::StatusOr<v1::PushResponse> pushed = push(3);
  while (absl::IsUnavailable(pushed.status())) pushed = push(3);

  ASSERT_OK(pushed);
  EXPECT_THAT(pushed->header().outcomes(), Each(v1::ACCEPTED));
  const auto taken = call.get();
  ASSERT_OK(taken);
  EXPECT_TRUE(taken->prepared());
  EXPECT_EQ(taken->attempt(), 3);
}

}  // namespace
}  // namespace lockstep::testing
