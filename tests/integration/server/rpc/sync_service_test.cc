#include "server/rpc/sync_service.h"

#include <cstdint>
#include <future>
#include <limits>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

using Stub = v1::SyncService::Stub;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

class SyncServiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::AnnounceResponse> Announce(
      const v1::AnnounceRequest& request) {
    return Call(shard_.sync(), &Stub::Announce, request);
  }
  absl::StatusOr<v1::TakeTokenResponse> TakeToken(
      const v1::TakeTokenRequest& request) {
    return Call(shard_.sync(), &Stub::TakeToken, request);
  }
  // Answers waits until `call` has its answer.
  template <typename Response>
  Response AnswerUntil(std::future<Response>& call) {
    while (call.wait_for(std::chrono::milliseconds(1)) !=
           std::future_status::ready) {
      shard_.AnswerWaits();
    }
    return call.get();
  }

  ServedShard shard_;
};

TEST_F(SyncServiceTest, FirstTokenIsFree) {
  shard_.Open();

  auto token = TakeToken(ServedShard::TokenRequest(0, -1));

  ASSERT_OK(token);
  EXPECT_EQ(token->outcome(), v1::TOKEN);
  EXPECT_EQ(token->step(), 0);
}

TEST_F(SyncServiceTest, FirstToAnnounceIsSelectedAndTheNextIsNotNeeded) {
  shard_.Open();

  auto first = Announce(ServedShard::AnnounceRequest(0, 0));
  auto next = Announce(ServedShard::AnnounceRequest(1, 0));
  auto again = Announce(ServedShard::AnnounceRequest(0, 0));

  ASSERT_OK(first);
  ASSERT_OK(next);
  ASSERT_OK(again);
  EXPECT_EQ(first->decision(), v1::SELECTED);
  EXPECT_EQ(next->decision(), v1::NOT_NEEDED);
  EXPECT_EQ(again->decision(), v1::SELECTED);
  EXPECT_EQ(again->attempt(), first->attempt());
}

TEST_F(SyncServiceTest, TokenOfTheNextStepComesWithTheCommit) {
  shard_.Open();
  shard_.Step(0, 1);

  auto token = TakeToken(ServedShard::TokenRequest(0, 0));
  auto late = Announce(ServedShard::AnnounceRequest(1, 0));

  ASSERT_OK(token);
  EXPECT_EQ(token->outcome(), v1::TOKEN);
  EXPECT_EQ(token->step(), 1);
  ASSERT_OK(late);
  EXPECT_EQ(late->decision(), v1::TOO_LATE);
  EXPECT_EQ(late->global_step(), 1);
}

TEST_F(SyncServiceTest, LongWaitIsAnsweredAndCanBeRepeated) {
  shard_.Open();
  ASSERT_OK(Announce(ServedShard::AnnounceRequest(0, 0)));
  v1::TakeTokenRequest request = ServedShard::TokenRequest(0, 0);
  request.set_attempt(1);
  auto call =
      std::async(std::launch::async, [&] { return TakeToken(request); });

  auto answer = AnswerUntil(call);

  ASSERT_OK(answer);
  EXPECT_EQ(answer->outcome(), v1::TOKEN_WAIT);
  shard_.Step(0, 1);
  auto again = TakeToken(request);
  ASSERT_OK(again);
  EXPECT_EQ(again->outcome(), v1::TOKEN);
}

TEST_F(SyncServiceTest, SelectedWorkerThatDiesIsReplacedByTheNextOne) {
  shard_.Open();
  ASSERT_OK(Announce(ServedShard::AnnounceRequest(0, 0)));
  auto next = Announce(ServedShard::AnnounceRequest(1, 0));
  ASSERT_OK(next);
  auto call = std::async(std::launch::async, [&] {
    return TakeToken(ServedShard::TokenRequest(1, 0));
  });
  v1::ExpireWorkerRequest expire;
  *expire.mutable_chief() = shard_.Chief();
  expire.set_worker(0);
  expire.set_incarnation(1);

  auto expired = Call(shard_.control(),
                      &v1::ShardControlService::Stub::ExpireWorker, expire);

  ASSERT_OK(expired);
  EXPECT_TRUE(expired->held_announcement());
  auto redo = call.get();
  ASSERT_OK(redo);
  EXPECT_EQ(redo->outcome(), v1::TOKEN_REDO);
  EXPECT_EQ(redo->attempt(), expired->attempt());
}

TEST_F(SyncServiceTest, PassThatCannotBeIsRefused) {
  shard_.Open();
  for (const int64_t pass :
       {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    v1::TakeTokenRequest take = ServedShard::TokenRequest(0, -1);
    take.set_pass(pass);
    v1::AnnounceRequest announce = ServedShard::AnnounceRequest(0, 0);
    announce.set_pass(pass);

    EXPECT_THAT(TakeToken(take), StatusIs(kInvalid, HasSubstr("pass is")));
    EXPECT_THAT(Announce(announce), StatusIs(kInvalid, HasSubstr("pass is")));
  }
}

TEST_F(SyncServiceTest, WorkerThatComputesLearnsThatItsStepIsOver) {
  shard_.Open();
  v1::TakeTokenRequest request = ServedShard::TokenRequest(1, 0);
  request.set_computing(true);
  auto call =
      std::async(std::launch::async, [&] { return TakeToken(request); });
  shard_.Step(0, 1);

  auto answer = call.get();

  ASSERT_OK(answer);
  EXPECT_EQ(answer->outcome(), v1::TOKEN);
  EXPECT_EQ(answer->step(), 1);
}

TEST_F(SyncServiceTest, ClosedQueueSaysThatTrainingIsOver) {
  shard_.Open();
  v1::CloseTokensRequest close;
  *close.mutable_chief() = shard_.Chief();
  ASSERT_OK(Call(shard_.control(), &v1::ShardControlService::Stub::CloseTokens,
                 close));

  auto token = TakeToken(ServedShard::TokenRequest(0, 0));

  ASSERT_OK(token);
  EXPECT_EQ(token->outcome(), v1::TOKEN_FINISHED);
}

// A worker that kept joining again would hold up the job.
TEST_F(SyncServiceTest, ServerThatIsTakenForPs0SaysSo) {
  ServedShard other(1);
  other.Open();

  EXPECT_THAT(
      Call(other.sync(), &Stub::TakeToken, ServedShard::TokenRequest(0, -1)),
      StatusIs(kInvalid, HasSubstr("ps 1 was taken for ps 0")));
  EXPECT_THAT(
      Call(other.sync(), &Stub::Announce, ServedShard::AnnounceRequest(0, 0)),
      StatusIs(kInvalid, HasSubstr("give all tasks the same cluster")));
}

TEST_F(SyncServiceTest, BadRequestsAreRefusedAndSelectNoWorker) {
  shard_.Open();
  v1::AnnounceRequest to_come = ServedShard::AnnounceRequest(1, 1);
  v1::AnnounceRequest slot = ServedShard::AnnounceRequest(1, 0);
  slot.set_slot(1);
  v1::AnnounceRequest too_many = ServedShard::AnnounceRequest(2, 0);
  v1::AnnounceRequest server = ServedShard::AnnounceRequest(1, 0);
  server.mutable_identity()->set_task_type("ps");
  v1::AnnounceRequest other_job = ServedShard::AnnounceRequest(1, 0);
  other_job.mutable_identity()->set_job_id("other");

  EXPECT_THAT(Announce(to_come), StatusIs(kPrecondition));
  EXPECT_THAT(Announce(slot), StatusIs(kInvalid));
  EXPECT_THAT(Announce(too_many), StatusIs(kInvalid));
  EXPECT_THAT(Announce(server), StatusIs(kInvalid));
  EXPECT_THAT(Announce(other_job), StatusIs(kPrecondition));
  EXPECT_THAT(TakeToken(ServedShard::TokenRequest(2, 0)), StatusIs(kInvalid));
  v1::TakeTokenRequest share = ServedShard::TokenRequest(1, 0);
  share.set_slot(-1);
  EXPECT_THAT(TakeToken(share), StatusIs(kInvalid));
  v1::TakeTokenRequest stranger = ServedShard::TokenRequest(1, 0);
  stranger.mutable_identity()->set_job_id("other");
  EXPECT_THAT(TakeToken(stranger), StatusIs(kPrecondition));
  stranger.clear_identity();
  EXPECT_THAT(TakeToken(stranger), StatusIs(kInvalid));

  auto announced = Announce(ServedShard::AnnounceRequest(0, 0));
  ASSERT_OK(announced);
  EXPECT_EQ(announced->decision(), v1::SELECTED);
}

TEST_F(SyncServiceTest, CallsAreRefusedBeforeTheStepsBegin) {
  EXPECT_THAT(Announce(ServedShard::AnnounceRequest(0, 0)),
              StatusIs(absl::StatusCode::kUnavailable));
  shard_.Create();

  EXPECT_THAT(Announce(ServedShard::AnnounceRequest(0, 0)),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(TakeToken(ServedShard::TokenRequest(0, -1)),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(SyncServiceTest, ExpiredIncarnationIsRefusedAndItsSuccessorServed) {
  shard_.Open();
  shard_.host().ExpireWorker(0, 1);
  v1::AnnounceRequest successor = ServedShard::AnnounceRequest(0, 0);
  *successor.mutable_identity() = ServedShard::Worker(0, 2);

  EXPECT_THAT(Announce(ServedShard::AnnounceRequest(0, 0)),
              StatusIs(kPrecondition));
  EXPECT_THAT(TakeToken(ServedShard::TokenRequest(0, -1)),
              StatusIs(kPrecondition));

  auto announced = Announce(successor);
  ASSERT_OK(announced);
  EXPECT_EQ(announced->decision(), v1::SELECTED);
}

TEST_F(SyncServiceTest, BytesThatAreNoMessageAreRefused) {
  shard_.Open();

  for (const char* method : {"/lockstep.v1.SyncService/Announce",
                             "/lockstep.v1.SyncService/TakeToken"}) {
    EXPECT_THAT(
        CallWithBytes(shard_.channel(), method, std::string(100, '\xff')),
        StatusIs(kInvalid));
    EXPECT_THAT(CallWithBytes(shard_.channel(), method, ""),
                StatusIs(kInvalid));
  }
  EXPECT_OK(Announce(ServedShard::AnnounceRequest(0, 0)));
}

TEST(SyncServiceElsewhereTest, TokensOfCompatibleModeAreForWorkersOfTheJob) {
  ServedShard shard(/*task_index=*/0, SyncMode::kCompatible);
  shard.Open();

  EXPECT_THAT(
      Call(shard.sync(), &Stub::TakeToken, ServedShard::TokenRequest(2, 0)),
      StatusIs(kInvalid));

  // The only token is still there.
  auto token =
      Call(shard.sync(), &Stub::TakeToken, ServedShard::TokenRequest(1, 0));
  ASSERT_OK(token);
  EXPECT_EQ(token->outcome(), v1::TOKEN);
  EXPECT_EQ(token->step(), 0);
}

TEST(SyncServiceElsewhereTest, TokenOfAPassThatWasPushedIsNotGivenTwice) {
  ServedShard shard(/*task_index=*/0, SyncMode::kCompatible);
  shard.Open();
  // After the first pass, which needs none.
  ASSERT_OK(
      Call(shard.sync(), &Stub::TakeToken, ServedShard::TokenRequest(0, 0)));
  v1::PushRequest push = ServedShard::PushRequest(0, 0, 1);
  push.mutable_header()->set_pass(2);
  ASSERT_OK(Call(shard.parameters(), &v1::ParameterService::Stub::Push, push));

  v1::ExpireWorkerRequest request;
  *request.mutable_chief() = shard.Chief();
  request.set_worker(0);
  request.set_incarnation(1);
  auto expired = Call(shard.control(),
                      &v1::ShardControlService::Stub::ExpireWorker, request);

  ASSERT_OK(expired);
  EXPECT_FALSE(expired->held_token());
}

TEST(SyncServiceElsewhereTest, PassOfCompatibleModeCannotBeWatched) {
  ServedShard shard(/*task_index=*/0, SyncMode::kCompatible);
  shard.Open();
  v1::TakeTokenRequest request = ServedShard::TokenRequest(0, 0);
  request.set_computing(true);

  EXPECT_THAT(Call(shard.sync(), &Stub::TakeToken, request),
              StatusIs(kInvalid, ::testing::HasSubstr("computing")));
}

}  // namespace
}  // namespace lockstep::testing
