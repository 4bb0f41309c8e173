// A client that asks for values and does not read the answer.

#include <cstdint>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/wire/wire_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/http2_peer.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

// More than all buffers between two processes hold.
constexpr int64_t kElements = int64_t{8} << 20;
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";

// A server of one variable in one part, which one worker's gradient updates.
class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() {
    server_.host().SetJobId(kJobId);
    JobConfig job = server_.Job();
    job.total_num_replicas = 1;
    const std::vector<VariableSpec> variables = {
        {"w",
         {kElements},
         DType::kFloat32,
         {Initializer::Kind::kConstant, 1, 0}}};
    shard_ = server_.host()
                 .Create(job, variables, {{0, 0, kElements, DType::kFloat32}})
                 .value();
    shard_->Activate(0, {}).value();
  }

  static v1::PullRequest PullRequest(int64_t step) {
    v1::PullRequest request = ServedShard::PullRequest(step);
    request.mutable_parts()->set_num_parts(1);
    return request;
  }
  static bool AskForValues(Http2Peer& client) {
    return client.SendMessage(client.Open(kPull),
                              PullRequest(0).SerializeAsString());
  }
  // The step's only gradient; its update may have to wait.
  void Push(int64_t step) {
    lockstep::server::Push push;
    push.pass = {0, 1, step, step + 1, 0};
    push.attempt = 1;
    push.gradients = {{{{reinterpret_cast<const std::byte*>(gradient_.data()),
                         gradient_.size() * sizeof(float)}},
                       nullptr}};
    ASSERT_OK(shard_->engine().AddPush(1, std::move(push)));
  }
  bool WaitsFor(const char* what) const {
    return shard_->engine().WaitsFor().find(what) != std::string::npos;
  }
  bool IsPrepared(int64_t step) {
    shard_->engine().PartReturned(0);  // as the server's own thread does
    return shard_->engine().CheckCommit(step, 1).ok();
  }
  void Commit(int64_t step) { ASSERT_OK(shard_->engine().Commit(step, 1)); }

  // One turn of a worker and a chief that make step after step.
  void Turn() {
    const int64_t step = shard_->engine().step();
    if (WaitsFor("gradient")) Push(step);
    if (IsPrepared(step + 1)) Commit(step + 1);
    std::this_thread::yield();
  }

  int port() const {
    const std::string address = server_.address();
    return std::stoi(address.substr(address.find(':') + 1));
  }

  ServedShard server_;
  std::shared_ptr<server::Shard> shard_;
  const std::vector<float> gradient_ = std::vector<float>(kElements, 1);
};

TEST_F(ReaderTest, CallerThatDoesNotReadLosesItsConnectionAndStepsGoOn) {
  Http2Peer deaf(port(), Http2Peer::kLargestWindow);
  ASSERT_TRUE(AskForValues(deaf));
  const absl::Time deadline = absl::Now() + kPatience;
  // Once it has been answered it is in the way of a step, and then no more.
  int64_t blocked_step = -1;
  while (blocked_step < 0 || shard_->engine().step() < blocked_step + 2) {
    if (WaitsFor("readers")) blocked_step = shard_->engine().step();
    Turn();
    ASSERT_LT(absl::Now(), deadline) << shard_->engine().WaitsFor();
  }

  auto pulled = Call(server_.parameters(), &v1::ParameterService::Stub::Pull,
                     PullRequest(1));

  ASSERT_OK(pulled);
  EXPECT_EQ(pulled->header().step(), shard_->engine().step());
  EXPECT_EQ(pulled->payload().size(), kElements * sizeof(float));
}

// Its connection is well: it answers pings.
TEST_F(ReaderTest, CallsWhoseAnswersAreNotReadAreBrokenOffAfterALease) {
  constexpr int kCalls = 8;
  const absl::Time started = absl::Now();
  const absl::Time deadline = started + kPatience;
  Http2Peer client(port(), /*window=*/0);
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(AskForValues(client));
  client.AnswerInBackground();
  while (!WaitsFor("readers") || client.pings() < 2) {
    Turn();
    // All that were answered so far have time left.
    server_.TakeBack(started + server_.Job().lease);
    ASSERT_LT(absl::Now(), deadline) << shard_->engine().WaitsFor();
  }
  EXPECT_EQ(client.ended_calls(), 0);
  const int64_t blocked_step = shard_->engine().step();

  while (shard_->engine().step() < blocked_step + 10 ||
         client.ended_calls() < kCalls) {
    server_.TakeBack(absl::InfiniteFuture());
    Turn();
    ASSERT_LT(absl::Now(), deadline) << shard_->engine().WaitsFor();
  }

  EXPECT_FALSE(client.closed());
}

TEST_F(ReaderTest, StateIsOpenedAgainThoughAnAnswerIsNotRead) {
  Http2Peer client(port(), /*window=*/0);
  ASSERT_TRUE(AskForValues(client));
  client.AnswerInBackground();
  const absl::Time deadline = absl::Now() + kPatience;
  while (!WaitsFor("readers")) {
    Turn();
    ASSERT_LT(absl::Now(), deadline) << shard_->engine().WaitsFor();
  }
  const int64_t step = shard_->engine().step();
  shard_ = nullptr;
  v1::TakeEpochRequest take;
  *take.mutable_chief() = server_.Chief();
  const auto epoch =
      Call(server_.control(), &v1::ShardControlService::Stub::TakeEpoch, take);
  ASSERT_OK(epoch);
  server_.set_epoch(epoch->epoch());
  server_.set_workers(1);
  v1::CreateShardRequest create = server_.CreateRequest();
  create.mutable_job()->set_learning_rate(0.25);
  create.clear_variables();
  create.clear_parts();
  *create.add_variables() = ToProto(VariableSpec{
      "w", {kElements}, DType::kFloat32, {Initializer::Kind::kConstant, 1, 0}});
  *create.add_parts() = ToProto(Part{0, 0, kElements, 0, 0});

  const auto opened = Call(server_.control(),
                           &v1::ShardControlService::Stub::CreateShard, create);

  ASSERT_OK(opened);
  EXPECT_EQ(opened->committed_step(), step);
  EXPECT_FALSE(client.closed());
}

// Whatever an update waits for, it is not the memory that they are lent.
TEST_F(ReaderTest, CallsThatAreInTheWayOfNothingGoOn) {
  Http2Peer client(port(), /*window=*/0);
  ASSERT_TRUE(AskForValues(client));
  client.AnswerInBackground();
  const absl::Time deadline = absl::Now() + kPatience;
  while (client.pings() < 2) {
    server_.TakeBack(absl::InfiniteFuture());
    std::this_thread::yield();
    ASSERT_LT(absl::Now(), deadline);
  }
  EXPECT_EQ(client.ended_calls(), 0);
  EXPECT_FALSE(client.closed());
}

}  // namespace
}  // namespace lockstep::testing
