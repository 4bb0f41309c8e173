#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "lockstep/v1/call_stream.grpc.pb.h"
#include "server/rpc/shard_control_service.h"
#include "tests/integration/server/rpc/shard_control_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

using Stub = v1::ShardControlService::Stub;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

using ShardControlStepsTest = ShardControlFixture;

TEST_F(ShardControlStepsTest, LongTakeSaysWhatItWaitsFor) {
  shard_.Open();
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(1, 0)));
  auto call = std::async(std::launch::async, [&] {
    return Call(shard_.control(), &Stub::TakeAndApply, shard_.TakeRequest(0));
  });

  while (call.wait_for(std::chrono::milliseconds(1)) !=
         std::future_status::ready) {
    shard_.AnswerWaits();
  }

  auto answer = call.get();
  ASSERT_OK(answer);
  EXPECT_FALSE(answer->prepared());
  EXPECT_EQ(answer->waits_for(), "1 of 1 gradient of 3 parts");
  EXPECT_THAT(answer->announced_workers(), ElementsAre(1));
}

TEST_F(ShardControlStepsTest, OnlyAPreparedStepIsCommitted) {
  shard_.Open();
  EXPECT_THAT(Commit(1, 1), StatusIs(kPrecondition));
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));

  EXPECT_THAT(Commit(1, 1), StatusIs(kPrecondition));  // not pushed yet
  EXPECT_THAT(Commit(2, 1), StatusIs(kPrecondition));
  EXPECT_THAT(Commit(-1, 1), StatusIs(kPrecondition));

  ExpectUntouched();
}

TEST_F(ShardControlStepsTest, OnlyThePreparedAttemptIsCommittedAndOnlyOnce) {
  shard_.Open();
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));
  ASSERT_OK(Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                 ServedShard::PushRequest(0, 1, 2)));

  EXPECT_THAT(Commit(1, 2), StatusIs(kPrecondition));
  EXPECT_THAT(shard_.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));

  EXPECT_OK(Commit(1, 1));
  EXPECT_OK(Commit(1, 1));
  EXPECT_THAT(shard_.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST_F(ShardControlStepsTest, NoWorkerCommitsAStepOfTheJob) {
  shard_.Open();
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));
  ASSERT_OK(Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                 ServedShard::PushRequest(0, 1, 2)));

  EXPECT_THAT(Call(shard_.parameters(), &v1::ParameterService::Stub::Pull,
                   ServedShard::PullRequest(1)),
              StatusIs(kPrecondition, HasSubstr("step 1 is not committed")));
  EXPECT_THAT(Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                   ServedShard::PushRequest(1, 1, 2)),
              StatusIs(kPrecondition, HasSubstr("step 1 is not committed")));

  EXPECT_THAT(shard_.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
  EXPECT_OK(Call(shard_.control(), &Stub::TakeAndApply, shard_.TakeRequest(0)));
  EXPECT_OK(Commit(1, 1));
  EXPECT_THAT(shard_.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST_F(ShardControlStepsTest, WorkerThatWasNotSelectedCannotFillAPlace) {
  ServedShard other(/*task_index=*/1);
  shard_.Open();
  other.Open();
  ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));  // selected
  v1::PushRequest push = ServedShard::PushRequest(0, 1, 2);
  v1::PushRequest not_selected = push;
  *not_selected.mutable_header()->mutable_identity() = ServedShard::Worker(1);
  const auto push_to = [](ServedShard& server, const v1::PushRequest& request) {
    return Call(server.parameters(), &v1::ParameterService::Stub::Push,
                request);
  };

  auto superseded = push_to(shard_, not_selected);
  ASSERT_OK(superseded);
  EXPECT_THAT(superseded->header().outcomes(), Each(v1::SUPERSEDED));
  ASSERT_OK(push_to(shard_, push));
  // The other server does not know the set, but says whose gradients it took.
  ASSERT_OK(push_to(other, not_selected));
  auto taken = Call(other.control(), &Stub::TakeAndApply, other.TakeRequest(0));
  ASSERT_OK(taken);
  EXPECT_TRUE(taken->prepared());
  EXPECT_THAT(taken->contributors(), ElementsAre(1));
  v1::CommitRequest commit = shard_.CommitRequest(1, 1);
  *commit.add_contributors()->mutable_workers() = taken->contributors();

  auto redone = Call(shard_.control(), &Stub::Commit, commit);

  ASSERT_OK(redone);
  EXPECT_EQ(redone->redone_attempt(), 2);
  EXPECT_EQ(redone->global_step(), 0);
  EXPECT_THAT(shard_.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
  // The other server hears of the new attempt by the take that follows.
  v1::TakeAndApplyRequest take = other.TakeRequest(0);
  take.set_attempt(2);
  auto call = std::async(std::launch::async, [&] {
    return Call(other.control(), &Stub::TakeAndApply, take);
  });
  push.mutable_header()->set_attempt(2);
  ASSERT_OK(push_to(shard_, push));
  absl::StatusOr<v1::PushResponse> pushed;
  do {
    pushed = push_to(other, push);
  } while (absl::IsUnavailable(pushed.status()));  // it has not heard yet
  ASSERT_OK(pushed);
  taken = call.get();
  ASSERT_OK(taken);
  EXPECT_THAT(taken->contributors(), ElementsAre(0));
  commit = shard_.CommitRequest(1, 2);
  *commit.add_contributors()->mutable_workers() = taken->contributors();
  EXPECT_OK(Call(shard_.control(), &Stub::Commit, commit));
  EXPECT_THAT(shard_.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST_F(ShardControlStepsTest, NoWorkerCommitsAStepOfAnotherServer) {
  ServedShard other(/*task_index=*/1);
  other.Open();
  ASSERT_OK(Call(other.parameters(), &v1::ParameterService::Stub::Push,
                 ServedShard::PushRequest(0, 1, 2)));
  const auto until_told = [&other](auto call) {
    auto answer = std::async(std::launch::async, call);
    while (answer.wait_for(std::chrono::milliseconds(1)) !=
           std::future_status::ready) {
      other.AnswerWaits();
    }
    return answer.get();
  };
  const auto retry = StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("the chief has not said yet"));

  EXPECT_THAT(until_told([&other] {
                return Call(other.parameters(),
                            &v1::ParameterService::Stub::Pull,
                            ServedShard::PullRequest(1))
                    .status();
              }),
              retry);
  EXPECT_THAT(until_told([&other] {
                return Call(other.parameters(),
                            &v1::ParameterService::Stub::Push,
                            ServedShard::PushRequest(1, 1, 2))
                    .status();
              }),
              retry);

  EXPECT_THAT(other.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
}

TEST_F(ShardControlStepsTest, CallsOfACommittedStepGoOnAfterTheChiefsWord) {
  ServedShard other(/*task_index=*/1);
  other.Open();
  ASSERT_OK(Call(other.parameters(), &v1::ParameterService::Stub::Push,
                 ServedShard::PushRequest(0, 1, 2)));
  const auto stub = v1::CallStreamService::NewStub(other.channel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  const auto stream = stub->Calls(&context);
  const auto send = [&stream](uint64_t id, const std::string& method,
                              const std::string& request) {
    v1::StreamedCalls calls;
    v1::StreamedCall& call = *calls.add_calls();
    call.set_id(id);
    call.set_method("/lockstep.v1.ParameterService/" + method);
    call.set_request(request);
    return stream->Write(calls);
  };
  const auto read = [&stream] {
    v1::StreamedAnswers answers;
    std::vector<uint64_t> ids;
    if (!stream->Read(&answers)) ids.push_back(0);  // it has ended
    for (const auto& answer : answers.answers()) {
      EXPECT_EQ(answer.code(), 0) << answer.message();
      ids.push_back(answer.id());
    }
    return ids;
  };
  // A stream's calls are served in their order: when the third is answered, the
  // others wait.
  ASSERT_TRUE(send(1, "Pull", ServedShard::PullRequest(1).SerializeAsString()));
  ASSERT_TRUE(
      send(2, "Push", ServedShard::PushRequest(1, 1, 2).SerializeAsString()));
  ASSERT_TRUE(
      send(3, "Pull", ServedShard::PullRequest(-1).SerializeAsString()));
  ASSERT_THAT(read(), ElementsAre(3));

  ASSERT_OK(
      Call(other.control(), &Stub::Commit, other.CommitRequest(1, 1)).status());

  std::vector<uint64_t> ids = read();
  if (ids.size() == 1) ids.push_back(read().at(0));
  EXPECT_THAT(ids, UnorderedElementsAre(1, 2));
  stream->WritesDone();
  stream->Finish();
}

TEST_F(ShardControlStepsTest, TakeIsOfTheStepAtHandAndCanBeRepeated) {
  shard_.Open();
  shard_.Step(0, 1);
  shard_.Announce(1);
  ASSERT_OK(Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                 ServedShard::PushRequest(1, 1, 1)));

  EXPECT_THAT(
      Call(shard_.control(), &Stub::TakeAndApply, shard_.TakeRequest(0)),
      StatusIs(kPrecondition));
  EXPECT_THAT(
      Call(shard_.control(), &Stub::TakeAndApply, shard_.TakeRequest(3)),
      StatusIs(kPrecondition));

  for (int i = 0; i < 2; ++i) {
    auto taken =
        Call(shard_.control(), &Stub::TakeAndApply, shard_.TakeRequest(1));
    ASSERT_OK(taken);
    EXPECT_TRUE(taken->prepared());
    EXPECT_EQ(taken->attempt(), 1);
  }
}

// The chief's take with a grant, answered by the push that follows.
class GrantedStepsTest : public ShardControlFixture {
 protected:
  void Push(int64_t step, int64_t attempt = 1) {
    ASSERT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                   ServedShard::AnnounceRequest(0, step)));
    ASSERT_OK(Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                   ServedShard::PushRequest(step, attempt, 2)));
  }
  absl::StatusOr<v1::TakeAndApplyResponse> Take(int64_t step,
                                                int64_t commit_until) {
    v1::TakeAndApplyRequest request = shard_.TakeRequest(step);
    request.set_commit_until(commit_until);
    return Call(shard_.control(), &Stub::TakeAndApply, request);
  }
  // The same for a take that has to wait; it is filed when this returns.
  std::future<absl::StatusOr<v1::TakeAndApplyResponse>> StartTake(
      int64_t step, int64_t commit_until) {
    auto take = std::async(std::launch::async,
                           [=, this] { return Take(step, commit_until); });
    while (!(*shard_.host().shard())->MayCommit(commit_until)) {
      std::this_thread::yield();
    }
    return take;
  }
};

TEST_F(GrantedStepsTest, GrantedStepsAreCommittedWithoutTheChief) {
  shard_.Open();
  auto take = StartTake(0, 2);

  Push(0);
  EXPECT_THAT(shard_.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
  Push(1);
  auto token = Call(shard_.sync(), &v1::SyncService::Stub::TakeToken,
                    ServedShard::TokenRequest(0, 1));

  ASSERT_OK(token);
  EXPECT_EQ(token->outcome(), v1::TOKEN);
  EXPECT_EQ(token->step(), 2);
  EXPECT_EQ(token->attempt(), 1);
  auto taken = take.get();
  ASSERT_OK(taken);
  EXPECT_TRUE(taken->prepared());
  EXPECT_GE(taken->committed_step(), 1);
  auto late = Take(0, 2);
  ASSERT_OK(late);
  EXPECT_EQ(late->committed_step(), 2);
}

TEST_F(GrantedStepsTest, StepBeyondTheGrantIsLeftToTheChief) {
  shard_.Open();
  auto take = StartTake(0, 1);
  Push(0);
  ASSERT_OK(take.get());

  Push(1);

  EXPECT_THAT(shard_.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
  auto taken = Take(1, 1);
  ASSERT_OK(taken);
  EXPECT_TRUE(taken->prepared());
  EXPECT_EQ(taken->committed_step(), 0);
  EXPECT_OK(Commit(2, 1));
}

TEST_F(GrantedStepsTest, NewChiefEndsWhatTheOldOneGranted) {
  shard_.Open();
  auto take = StartTake(0, 5);

  ASSERT_OK(TakeEpoch());
  Push(0);

  EXPECT_THAT(shard_.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
  auto taken = take.get();
  ASSERT_OK(taken);
  EXPECT_EQ(taken->committed_step(), 0);
}

// The chief's takes meet commits at every instant.
TEST_F(GrantedStepsTest, TakeThatTheServerHasOvertakenIsAnswered) {
  constexpr int64_t kSteps = 300;
  shard_.Open();
  std::atomic<bool> failed = false;
  std::thread chief([&] {
    for (int64_t step = 0; step < kSteps && !failed;) {
      auto taken = Take(step, kSteps);
      failed = !taken.ok();
      EXPECT_OK(taken);
      if (!failed) step = std::max(step, taken->committed_step());
    }
  });
  while (!(*shard_.host().shard())->MayCommit(kSteps)) {
    std::this_thread::yield();
  }
  for (int64_t step = 0; step < kSteps && !failed; ++step) Push(step);
  chief.join();
}

TEST_F(ShardControlStepsTest, CommitOfCompatibleModeNeedsEveryPart) {
  ServedShard shard(/*task_index=*/0, SyncMode::kCompatible);
  shard.Open();

  EXPECT_THAT(Call(shard.control(), &Stub::Commit, shard.CommitRequest(1, 0)),
              StatusIs(kPrecondition));

  // The one token there is was issued at the start: none of step 1.
  auto first = Call(shard.sync(), &v1::SyncService::Stub::TakeToken,
                    ServedShard::TokenRequest(0, 0));
  auto next = std::async(std::launch::async, [&] {
    return Call(shard.sync(), &v1::SyncService::Stub::TakeToken,
                ServedShard::TokenRequest(1, 0));
  });
  while (next.wait_for(std::chrono::milliseconds(1)) !=
         std::future_status::ready) {
    shard.AnswerWaits();
  }
  ASSERT_OK(first);
  EXPECT_EQ(first->step(), 0);
  auto waited = next.get();
  ASSERT_OK(waited);
  EXPECT_EQ(waited->outcome(), v1::TOKEN_WAIT);

  shard.Step(0, 2);
  EXPECT_THAT(shard.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST_F(ShardControlStepsTest, OnlyServerZeroHasTokensToClose) {
  ServedShard shard(/*task_index=*/1);
  shard.Open();
  v1::CloseTokensRequest close;
  *close.mutable_chief() = shard.Chief();

  EXPECT_THAT(Call(shard.control(), &Stub::CloseTokens, close),
              StatusIs(kPrecondition, HasSubstr("ps 0")));
}

TEST_F(ShardControlStepsTest, SnapshotStaysAsItWas) {
  shard_.Open();
  shard_.Step(0, 1);
  v1::BeginSnapshotRequest begin;
  *begin.mutable_chief() = shard_.Chief();
  auto begun = Call(shard_.control(), &Stub::BeginSnapshot, begin);
  ASSERT_OK(begun);
  EXPECT_EQ(begun->global_step(), 1);
  auto before = Call(shard_.control(), &Stub::ReadSnapshot, ReadRequest());

  shard_.Step(1, 1);

  auto after = Call(shard_.control(), &Stub::ReadSnapshot, ReadRequest());
  ASSERT_OK(before);
  ASSERT_OK(after);
  EXPECT_EQ(after->header().global_step(), 1);
  EXPECT_EQ(after->payload(), before->payload());
}

TEST_F(ShardControlStepsTest, SnapshotThatIsNotThereIsNotRead) {
  shard_.Open();
  EXPECT_THAT(Call(shard_.control(), &Stub::ReadSnapshot, ReadRequest()),
              StatusIs(kPrecondition));
  v1::BeginSnapshotRequest begin;
  *begin.mutable_chief() = shard_.Chief();
  ASSERT_OK(Call(shard_.control(), &Stub::BeginSnapshot, begin));
  v1::ReadSnapshotRequest slot = ReadRequest();
  slot.mutable_selector()->set_tensor(1);

  v1::ReadSnapshotRequest beyond = ReadRequest();
  beyond.mutable_selector()->mutable_parts()->set_first_part(1);
  v1::EndSnapshotRequest end;
  *end.mutable_chief() = shard_.Chief();

  EXPECT_THAT(Call(shard_.control(), &Stub::ReadSnapshot, slot),
              StatusIs(kInvalid));
  EXPECT_THAT(Call(shard_.control(), &Stub::ReadSnapshot, beyond),
              StatusIs(kInvalid));
  EXPECT_OK(Call(shard_.control(), &Stub::ReadSnapshot, ReadRequest()));

  EXPECT_OK(Call(shard_.control(), &Stub::EndSnapshot, end));
  EXPECT_OK(Call(shard_.control(), &Stub::EndSnapshot, end));
  EXPECT_THAT(Call(shard_.control(), &Stub::ReadSnapshot, ReadRequest()),
              StatusIs(kPrecondition));
}

}  // namespace
}  // namespace lockstep::testing
