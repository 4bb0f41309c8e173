// The parameter client against a server that is on the wire, without a chief:
// the test commits.

#include "worker/client/parameter_client.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/server.h"
#include "common/text/count_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Waits for what has to happen; a hang fails the test.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const absl::Time deadline = absl::Now() + kCallTimeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

class ParameterClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shard_.Open();
    client_ = MakeClient(/*incarnation=*/1);
  }

  // The client of worker 1, which sends "w" in one message and "b" in another.
  std::unique_ptr<worker::ParameterClient> MakeClient(uint64_t incarnation) {
    return std::make_unique<worker::ParameterClient>(
        worker::ParameterClient::Options{
            {shard_.address()},
            {kJobId, {TaskType::kWorker, 1}, incarnation},
            /*max_part_bytes=*/32},
        plan_, memory_);
  }

  void FillGradients(float value) {
    const auto floats = memory_.gradient(0);
    std::fill_n(reinterpret_cast<float*>(floats.data()), 8, value);
    const auto doubles = memory_.gradient(1);
    std::fill_n(reinterpret_cast<double*>(doubles.data()), 2, value);
  }
  std::vector<float> FloatsInMemory() const {
    const auto* w = reinterpret_cast<const float*>(memory_.value(0).data());
    return {w, w + 8};
  }

  // Waits until the server lacks the gradients of so many parts.
  bool ServerWaitsForParts(int parts) {
    const std::string lack =
        parts == 0 ? "" : "1 of 1 gradient of " + CountText(parts, "part");
    const std::shared_ptr<server::Shard> shard = *shard_.host().shard();
    return Eventually([&] { return shard->engine().WaitsFor() == lack; });
  }

  // Commits as the chief does when all gradients of a step are in.
  void Commit(int64_t step) {
    using Stub = v1::ShardControlService::Stub;
    const auto taken =
        Call(shard_.control(), &Stub::TakeAndApply, shard_.TakeRequest(step));
    ASSERT_OK(taken);
    ASSERT_TRUE(taken->prepared());
    ASSERT_OK(Call(shard_.control(), &Stub::Commit,
                   shard_.CommitRequest(step + 1, taken->attempt())));
  }

  void ExpireWorker(int worker, uint64_t incarnation) {
    v1::ExpireWorkerRequest expire;
    *expire.mutable_chief() = shard_.Chief();
    expire.set_worker(worker);
    expire.set_incarnation(incarnation);
    ASSERT_OK(Call(shard_.control(),
                   &v1::ShardControlService::Stub::ExpireWorker, expire));
  }

  // Announces the pass and expects to be selected.
  int64_t Announce(const PassId& pass) {
    const auto announced = client_->Announce(pass);
    EXPECT_OK(announced);
    EXPECT_EQ(announced->decision, worker::Announcement::Decision::kSelected);
    return announced->attempt;
  }

  const Plan plan_ = ServedShard::MakePlan();
  ServedShard shard_;
  worker::ParameterMemory memory_ =
      *worker::ParameterMemory::Make(plan_.variables);
  std::unique_ptr<worker::ParameterClient> client_;
};

TEST_F(ParameterClientTest, GradientsAreSentAsTheyBecomeReady) {
  const PassId pass{0, 1, 0};
  ASSERT_THAT(client_->Pull(0), IsOkAndHolds(0));
  FillGradients(2);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);
  client_->BeginPush(pass, Announce(pass));

  client_->GradientReady(1);

  EXPECT_TRUE(ServerWaitsForParts(2));
  EXPECT_THAT(FloatsInMemory(), Each(1));  // still in use
  client_->GradientReady(0);
  EXPECT_TRUE(ServerWaitsForParts(0));
  const auto counts = client_->Push(pass, 1);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
  EXPECT_THAT(FloatsInMemory(), Each(0));  // 1 - 0.5 * 2
  Commit(0);
  const auto token = client_->TakeToken(pass, 1);
  ASSERT_OK(token);
  EXPECT_EQ(token->step, 1);
  EXPECT_THAT(client_->Pull(1), IsOkAndHolds(1));
  EXPECT_THAT(FloatsInMemory(), Each(0));
}

TEST_F(ParameterClientTest, WhatWasReadyBeforeThePushBeganIsSentToo) {
  const PassId pass{0, 1, 0};
  FillGradients(2);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);
  client_->GradientReady(1);

  client_->BeginPush(pass, Announce(pass));

  EXPECT_TRUE(ServerWaitsForParts(2));
  EXPECT_OK(client_->Push(pass, 1));
  EXPECT_TRUE(ServerWaitsForParts(0));
}

TEST_F(ParameterClientTest, PushSendsVariablesThatWereNotCalledReady) {
  const PassId pass{0, 1, 0};
  FillGradients(2);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);

  const auto counts = client_->Push(pass, Announce(pass));

  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
}

TEST_F(ParameterClientTest, PushForANewerAttemptSendsEverythingAgain) {
  const PassId pass{0, 1, 0};
  FillGradients(2);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);
  client_->BeginPush(pass, Announce(pass));
  client_->GradientReady(1);
  ASSERT_TRUE(ServerWaitsForParts(2));
  (*shard_.host().shard())->engine().StartAttempt(0, 2);

  const auto counts = client_->Push(pass, 2);

  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
}

TEST_F(ParameterClientTest, PassThatIsGivenUpHalfWayCountsNothing) {
  const PassId pass{0, 1, 0};
  FillGradients(100);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);
  client_->BeginPush(pass, Announce(pass));
  client_->GradientReady(1);
  ASSERT_TRUE(ServerWaitsForParts(2));

  client_.reset();

  ExpireWorker(1, 1);
  client_ = MakeClient(/*incarnation=*/2);
  FillGradients(2);
  const int64_t attempt = Announce(pass);
  EXPECT_EQ(attempt, 2);
  const auto counts = client_->Push(pass, attempt);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
  Commit(0);
  EXPECT_THAT(shard_.Values(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST_F(ParameterClientTest, WatcherLearnsThatItsStepIsOver) {
  client_->BeginPass({0, 1, 0}, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/true);
  EXPECT_FALSE(client_->StepIsOver());

  shard_.Step(0, 1);

  EXPECT_TRUE(Eventually([&] { return client_->StepIsOver(); }));
  const auto token = client_->TakeToken({0, 1, 0}, 0);
  ASSERT_OK(token);
  EXPECT_EQ(token->step, 1);
}

TEST_F(ParameterClientTest, WatchOutlastsTheAnswerToALongWait) {
  client_->BeginPass({0, 1, 0}, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/true);
  for (int i = 0; i < 20; ++i) {
    shard_.AnswerWaits();
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_FALSE(client_->StepIsOver());

  shard_.Step(0, 1);

  EXPECT_TRUE(Eventually([&] { return client_->StepIsOver(); }));
}

TEST_F(ParameterClientTest, NextPassIsWatchedAnew) {
  client_->BeginPass({0, 1, 0}, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/true);
  shard_.Step(0, 1);
  ASSERT_TRUE(Eventually([&] { return client_->StepIsOver(); }));

  client_->BeginPass({1, 2, 0}, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/true);

  EXPECT_FALSE(client_->StepIsOver());
  shard_.Step(1, 1);
  EXPECT_TRUE(Eventually([&] { return client_->StepIsOver(); }));
}

TEST_F(ParameterClientTest, WatchedPassMayBeAnnouncedAndPushed) {
  const PassId pass{0, 1, 0};
  FillGradients(2);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/true);

  client_->BeginPush(pass, Announce(pass));

  EXPECT_OK(client_->Push(pass, 1));
  Commit(0);
  const auto token = client_->TakeToken(pass, 1);
  ASSERT_OK(token);
  EXPECT_EQ(token->step, 1);
}

TEST_F(ParameterClientTest, ValuesAreAwaitedBeforeTheirStepIsCommitted) {
  const PassId pass{0, 1, 0};
  FillGradients(2);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);

  client_->SendRest(pass, Announce(pass));

  EXPECT_OK(client_->AwaitValues(0, 1));
  EXPECT_THAT(FloatsInMemory(), Each(0));  // 1 - 0.5 * 2
  EXPECT_OK(client_->AwaitValues(0, 2));
  const auto counts = client_->Push(pass, 1);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
  EXPECT_EQ(counts->duplicate, 0);
  Commit(0);
  const auto token = client_->TakeToken(pass, 1);
  ASSERT_OK(token);
  EXPECT_EQ(token->step, 1);
  EXPECT_EQ(token->attempt, 1);
  EXPECT_THAT(client_->Pull(1), IsOkAndHolds(1));
}

// The third of three messages, which is "b", would come last in the first pass.
TEST_F(ParameterClientTest, LaterAttemptsKeepNothingBack) {
  const PassId pass{0, 1, 0};
  FillGradients(2);
  client_ = std::make_unique<worker::ParameterClient>(
      worker::ParameterClient::Options{{shard_.address()},
                                       {kJobId, {TaskType::kWorker, 1}, 1},
                                       /*max_part_bytes=*/16},
      plan_, memory_);
  client_->BeginPass(pass, worker::StepClient::PassKind::kAllCount,
                     /*watch=*/false);
  Announce(pass);
  (*shard_.host().shard())->engine().StartAttempt(0, 2);

  client_->BeginPush(pass, 2);
  client_->GradientReady(1);

  EXPECT_TRUE(ServerWaitsForParts(2));
  const auto counts = client_->Push(pass, 2);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
  EXPECT_EQ(counts->duplicate, 0);
}

TEST_F(ParameterClientTest, PushThatCameTooLateBringsNoValues) {
  const PassId pass{0, 1, 0};
  FillGradients(2);
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);
  const int64_t attempt = Announce(pass);
  (*shard_.host().shard())->engine().StartAttempt(0, 2);

  client_->SendRest(pass, attempt);

  EXPECT_THAT(client_->AwaitValues(0, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(client_->AwaitValues(1, 1), StatusIs(absl::StatusCode::kAborted));
  const auto counts = client_->Push(pass, attempt);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->superseded, 3);
  const auto again = client_->Push(pass, 2);
  ASSERT_OK(again);
  EXPECT_EQ(again->accepted, 3);
}

TEST_F(ParameterClientTest, NoValuesAreAwaitedWhereNothingWasSent) {
  EXPECT_THAT(client_->AwaitValues(0, 1), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ParameterClientTest, CancelEndsTheWaitForValues) {
  const PassId pass{0, 1, 0};
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/false);
  const int64_t attempt = Announce(pass);
  client_->Cancel();

  client_->SendRest(pass, attempt);

  EXPECT_THAT(client_->AwaitValues(0, 2), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(client_->Push(pass, attempt),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ParameterClientTest, CancelEndsAPushThatHasBegun) {
  const PassId pass{0, 1, 0};
  client_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                     /*watch=*/true);
  client_->BeginPush(pass, Announce(pass));
  client_->Cancel();

  EXPECT_THAT(client_->Push(pass, 1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client_->TakeToken(pass, 1),
              StatusIs(absl::StatusCode::kCancelled));
}

// The gradient of worker 0 does not come.
TEST(ParameterClientEndTest, EndOfTrainingEndsAPushThatNoStepAverages) {
  ServedShard shard;
  shard.set_replicas(2);
  shard.Open();
  const Plan plan = ServedShard::MakePlan();
  auto memory = *worker::ParameterMemory::Make(plan.variables);
  worker::ParameterClient client(
      {{shard.address()}, {kJobId, {TaskType::kWorker, 1}, 1}, 32}, plan,
      memory);
  const auto token = client.TakeToken({-1, 0, 0}, 0);
  ASSERT_OK(token);
  const PassId pass{0, 1, token->slot};
  client.BeginPass(pass, worker::StepClient::PassKind::kAllCount,
                   /*watch=*/false);
  client.SendRest(pass, token->selected_attempt);

  v1::CloseTokensRequest close;
  *close.mutable_chief() = shard.Chief();
  ASSERT_OK(Call(shard.control(), &v1::ShardControlService::Stub::CloseTokens,
                 close));

  const auto counts = client.Push(pass, token->selected_attempt);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 0);
  EXPECT_EQ(counts->stale, 1);
  const auto end = client.TakeToken(pass, token->selected_attempt);
  ASSERT_OK(end);
  EXPECT_EQ(end->kind, worker::Token::Kind::kFinished);
  EXPECT_THAT(client.Pull(0), IsOkAndHolds(0));
}

// A server with a part of 12 MiB and one of 16 bytes. It remembers how long
// callers would wait for the first.
class LargeService final : public v1::ParameterService::Service {
 public:
  static constexpr int64_t kElements = 3 << 20;

  grpc::Status Pull(grpc::ServerContext* context,
                    const v1::PullRequest* request,
                    v1::PullResponse* response) override {
    const bool large = request->parts().first_part() == 0;
    if (large) pull_wait = WaitOf(*context);
    response->set_payload(
        std::string(large ? kElements * sizeof(float) : 16, '\0'));
    return grpc::Status::OK;
  }
  grpc::Status Push(grpc::ServerContext* context,
                    const v1::PushRequest* request,
                    v1::PushResponse* /*response*/) override {
    const bool large = request->header().parts().first_part() == 0;
    if (large) push_wait = WaitOf(*context);
    return grpc::Status::OK;
  }

  std::atomic<int64_t> pull_wait = 0;  // seconds
  std::atomic<int64_t> push_wait = 0;

 private:
  static int64_t WaitOf(const grpc::ServerContext& context) {
    return absl::ToInt64Seconds(absl::FromChrono(context.deadline()) -
                                absl::Now());
  }
};

TEST(LargePartTest, PullsAndPushesHaveTheTimeThatASlowLineTakes) {
  constexpr int64_t kElements = LargeService::kElements;
  LargeService service;
  const auto server = *GrpcServer::Start("127.0.0.1:0", {&service});
  const Plan plan = {{{"w", {kElements}, DType::kFloat32, {}},
                      {"b", {2}, DType::kFloat64, {}}},
                     {{0, 0, kElements, 0, 0}, {1, 0, 2, 0, 1}}};
  worker::ParameterMemory memory = *worker::ParameterMemory::Make(
      plan.variables, worker::ParameterMemory::Gradients::kPrivate);
  worker::ParameterClient client({{absl::StrCat("127.0.0.1:", server->port())},
                                  {kJobId, {TaskType::kWorker, 1}, 1},
                                  /*max_part_bytes=*/kElements * 4},
                                 plan, memory);

  EXPECT_THAT(client.Pull(0), IsOkAndHolds(0));
  EXPECT_OK(client.Push({0, 1, 0}, 0));

  // 10 s, and a second for each MiB.
  EXPECT_GT(service.pull_wait, 15);
  EXPECT_GT(service.push_wait, 15);
}

}  // namespace
}  // namespace lockstep::testing
