#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/memory/write_counters.h"
#include "common/numeric/bfloat16.h"
#include "common/rpc/server.h"
#include "common/wire/shared_memory_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

using Gradients = worker::ParameterMemory::Gradients;

// A worker, and what it has in its memory.
struct Client {
  Client(const std::string& address, int worker, Gradients gradients,
         GradientType gradient_type = GradientType::kVariable,
         const Plan& plan = ServedShard::MakePlan())
      : memory(*worker::ParameterMemory::Make(plan.variables, gradients)),
        client({{address},
                {kJobId, {TaskType::kWorker, worker}, /*incarnation=*/1},
                /*max_part_bytes=*/16,
                gradient_type},
               plan, memory) {}

  // Different for every element and step.
  void Compute(int64_t step) {
    auto* w = reinterpret_cast<float*>(memory.gradient(0).data());
    auto* b = reinterpret_cast<double*>(memory.gradient(1).data());
    for (int i = 0; i < 8; ++i) w[i] = 0.1f * i - 0.03f * step;
    for (int i = 0; i < 2; ++i) b[i] = 0.7 * i + 0.01 * step;
    if (rounded) RoundToBFloat16InPlace(8, memory.gradient(0).data());
  }
  std::string Values() const {
    std::string bytes;
    for (size_t i = 0; i < 2; ++i) {
      bytes.append(reinterpret_cast<const char*>(memory.value(i).data()),
                   memory.value(i).size());
    }
    return bytes;
  }

  bool rounded = false;  // are the gradients of "w" that Compute() makes
  worker::ParameterMemory memory;
  worker::ParameterClient client;
};

bool IsShared(ServedShard& server, int worker) {
  auto shard = server.host().shard();
  return shard.ok() && (*shard)->shared_gradients().Find(worker, 1, 0, 3).ok();
}

// One step of worker 0 from the token of `step` to the next one's.
void Step(ServedShard& server, Client& worker, int64_t step) {
  const PassId pass{step, step + 1, 0};
  worker.Compute(step);
  auto announced = worker.client.Announce(pass);
  ASSERT_OK(announced);
  ASSERT_EQ(announced->decision, worker::Announcement::Decision::kSelected);
  auto counts = worker.client.Push(pass, announced->attempt);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
  server.FinishStep(step);
  EXPECT_THAT(worker.client.TakeToken(pass, announced->attempt),
              IsOkAndHolds(Field(&worker::Token::step, step + 1)));
  EXPECT_THAT(worker.client.Pull(step + 1), IsOkAndHolds(step + 1));
}

// The bytes that a worker has after each of three steps.
std::vector<std::string> Train(ServedShard& server, Client& worker) {
  std::vector<std::string> values;
  EXPECT_THAT(worker.client.Pull(0), IsOkAndHolds(0));
  values.push_back(worker.Values());
  for (int64_t step = 0; step < 3; ++step) {
    Step(server, worker, step);
    values.push_back(worker.Values());
  }
  return values;
}

TEST(ParameterClientSharingTest, SharedMemoryAndTheWireGiveTheSameBits) {
  ServedShard sharing;
  ServedShard sending;
  sharing.Open();
  sending.Open();
  Client shared(sharing.address(), 0, Gradients::kShared);
  Client sent(sending.address(), 0, Gradients::kPrivate);

  const std::vector<std::string> values = Train(sharing, shared);

  EXPECT_EQ(values, Train(sending, sent));
  EXPECT_NE(values[1], values[2]);
  EXPECT_TRUE(IsShared(sharing, 0));
  EXPECT_FALSE(IsShared(sending, 0));
  EXPECT_EQ(sharing.Values(), sending.Values());
}

TEST(ParameterClientSharingTest, GradientsAreReadAsTheyBecomeReady) {
  ServedShard server;
  server.Open();
  Client worker(server.address(), 0, Gradients::kShared);
  const PassId pass{0, 1, 0};
  ASSERT_THAT(worker.client.Pull(0), IsOkAndHolds(0));
  worker.Compute(0);
  const auto w = worker.memory.gradient(0);
  const std::vector<std::byte> gradient(w.begin(), w.end());
  std::memset(w.data(), 0xff, w.size());  // NaN
  worker.client.BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                          /*watch=*/false);
  const auto announced = worker.client.Announce(pass);
  ASSERT_OK(announced);
  worker.client.BeginPush(pass, announced->attempt);

  worker.client.GradientReady(1);
  std::copy(gradient.begin(), gradient.end(), w.begin());
  worker.client.GradientReady(0);

  const auto counts = worker.client.Push(pass, announced->attempt);
  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
  EXPECT_TRUE(IsShared(server, 0));
  server.FinishStep(0);
  ServedShard sending;
  sending.Open();
  Client sent(sending.address(), 0, Gradients::kPrivate);
  ASSERT_THAT(sent.client.Pull(0), IsOkAndHolds(0));
  Step(sending, sent, 0);
  EXPECT_EQ(server.Values(), sending.Values());
}

// On the wire, "b" of float64 would be refused.
TEST(ParameterClientSharingTest, SharedGradientsAreRoundedAsOthersAre) {
  ServedShard sharing;
  ServedShard sending;
  sharing.Open();
  sending.Open();
  Client shared(sharing.address(), 0, Gradients::kShared,
                GradientType::kBFloat16);
  Client sent(sending.address(), 0, Gradients::kPrivate);
  sent.rounded = true;

  EXPECT_EQ(Train(sharing, shared), Train(sending, sent));
}

TEST(ParameterClientSharingTest, BackupThatDoesNotPushReadsTheSameValues) {
  ServedShard server;
  server.Open();
  Client member(server.address(), 0, Gradients::kShared);
  Client backup(server.address(), 1, Gradients::kShared);
  Client remote(server.address(), 1, Gradients::kPrivate);
  ASSERT_THAT(member.client.Pull(0), IsOkAndHolds(0));
  ASSERT_THAT(backup.client.Pull(0), IsOkAndHolds(0));

  Step(server, member, 0);

  EXPECT_THAT(backup.client.Pull(1), IsOkAndHolds(1));
  EXPECT_THAT(remote.client.Pull(1), IsOkAndHolds(1));
  EXPECT_EQ(backup.Values(), member.Values());
  EXPECT_EQ(remote.Values(), member.Values());
  EXPECT_TRUE(IsShared(server, 1));
}

TEST(ParameterClientSharingTest, CompatibleModePushesOverTheWire) {
  ServedShard server(0, SyncMode::kCompatible);
  server.Open();
  Client worker(server.address(), 0, Gradients::kShared);

  EXPECT_THAT(worker.client.Pull(-1), IsOkAndHolds(0));
  worker.Compute(0);
  auto counts = worker.client.Push({0, 1, 0}, 0);

  ASSERT_OK(counts);
  EXPECT_EQ(counts->accepted, 3);
  EXPECT_FALSE(IsShared(server, 0));
}

// The values of "w" stay those of the step with which the pass began.
TEST(ParameterClientSharingTest, PullInACompatiblePassChangesNoOtherValue) {
  ServedShard server(0, SyncMode::kCompatible);
  server.Open();
  Client worker(server.address(), 1, Gradients::kPrivate);
  ASSERT_THAT(worker.client.Pull(-1), IsOkAndHolds(0));
  const std::string before = worker.Values();
  ASSERT_OK(Call(server.parameters(), &v1::ParameterService::Stub::Push,
                 ServedShard::PushRequest(0, /*attempt=*/0, 2)));
  server.FinishStep(0);

  EXPECT_OK(
      worker.client.PullAgain(-1, worker::StepClient::PulledAgain::kRows));
  EXPECT_EQ(worker.Values(), before);

  ASSERT_OK(worker.memory.TakeValue(1));
  EXPECT_OK(worker.client.PullAgain(
      -1, worker::StepClient::PulledAgain::kRowsAndTaken));
  EXPECT_EQ(worker.Values().substr(0, 32), before.substr(0, 32));
  double b = 0;
  std::memcpy(&b, worker.memory.value(1).data(), sizeof(b));
  EXPECT_EQ(b, 1);  // 2 - 0.5 * 2
  EXPECT_THAT(worker.client.Pull(-1), IsOkAndHolds(1));
  EXPECT_NE(worker.Values().substr(0, 32), before.substr(0, 32));
}

// FakeService has one value, 48 times the same byte, in memory that says 's'
// and as a payload that says 'p'.
class FakeService final : public v1::ParameterService::Service {
 public:
  FakeService()
      : values_(*SharedMemory::Create("test", 48)),
        counters_(*WriteCounters::Create(3)) {
    std::memset(values_->bytes().data(), 's', 48);
  }

  // The answer to shared pulls.
  void Forget(bool forgotten = true) { forgotten_ = forgotten; }
  void OverwriteTooSoon() { counters_->Begin(0); }
  void SayWhereNothingIs() { offset_ = 48; }
  // The first `count` answers to pulls have another step each.
  void RaiseSteps(int count) { last_step_ = count; }
  // The answer to OpenSharedMemory.
  void Refuse(bool refuses) { refuses_ = refuses; }
  // Pushes wait for one another until so many are under way, or for 30 s.
  void ExpectPushes(int count) { expected_ = count; }

  int times_opened() const { return opened_; }
  int times_pulled() const { return pulled_; }
  int most_pushes() const {
    MutexLock lock(mutex_);
    return most_pushes_;
  }

  grpc::Status OpenSharedMemory(
      grpc::ServerContext* /*context*/,
      const v1::OpenSharedMemoryRequest* /*request*/,
      v1::OpenSharedMemoryResponse* response) override {
    ++opened_;
    if (refuses_) return {grpc::StatusCode::NOT_FOUND, "another host"};
    *response->mutable_values() = ToProto(values_->file());
    *response->mutable_counters() = ToProto(counters_->file());
    return grpc::Status::OK;
  }
  grpc::Status Pull(grpc::ServerContext* /*context*/,
                    const v1::PullRequest* request,
                    v1::PullResponse* response) override {
    ++pulled_;
    if (last_step_ > 0) {
      const int64_t answer = ++answers_;
      response->mutable_header()->set_step(std::min(answer, last_step_.load()));
    }
    if (!request->shared()) {
      response->set_payload(
          std::string(16 * request->parts().num_parts(), 'p'));
      return grpc::Status::OK;
    }
    if (forgotten_) return {grpc::StatusCode::NOT_FOUND, "who are you"};
    for (int i = 0; i < request->parts().num_parts(); ++i) {
      *response->mutable_header()->add_values() =
          ToProto(SharedPlace{SharedMemory::kHeaderSize + offset_, 0, 0});
    }
    return grpc::Status::OK;
  }
  grpc::Status Push(grpc::ServerContext* /*context*/,
                    const v1::PushRequest* /*request*/,
                    v1::PushResponse* /*response*/) override {
    MutexLock lock(mutex_);
    most_pushes_ = std::max(most_pushes_, ++pushes_);
    pushed_.SignalAll();
    while (most_pushes_ < expected_ &&
           pushed_.WaitFor(mutex_, std::chrono::seconds(30))) {
    }
    --pushes_;
    return grpc::Status::OK;
  }

 private:
  const std::unique_ptr<SharedMemory> values_;
  const std::unique_ptr<WriteCounters> counters_;
  uint64_t offset_ = 0;
  std::atomic<bool> forgotten_ = false;
  std::atomic<bool> refuses_ = false;
  std::atomic<int64_t> last_step_ = 0;
  std::atomic<int64_t> answers_ = 0;
  std::atomic<int> opened_ = 0;
  std::atomic<int> pulled_ = 0;
  std::atomic<int> expected_ = 0;

  mutable Mutex mutex_;
  CondVar pushed_;
  int pushes_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_pushes_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ParameterClientOfAFakeTest : public ::testing::Test {
 protected:
  ParameterClientOfAFakeTest()
      : server_(*GrpcServer::Start("127.0.0.1:0", {&service_})),
        worker_(absl::StrCat("127.0.0.1:", server_->port()), 0,
                Gradients::kShared) {}

  FakeService service_;
  const std::unique_ptr<GrpcServer> server_;
  Client worker_;
};

TEST_F(ParameterClientOfAFakeTest, ValuesComeThroughMemory) {
  EXPECT_THAT(worker_.client.Pull(0), IsOkAndHolds(0));

  EXPECT_EQ(worker_.Values(), std::string(48, 's'));
}

TEST_F(ParameterClientOfAFakeTest, ValuesThatWereOverwrittenAreSentInstead) {
  service_.OverwriteTooSoon();

  EXPECT_THAT(worker_.client.Pull(0), IsOkAndHolds(0));

  EXPECT_EQ(worker_.Values(), std::string(48, 'p'));
}

TEST_F(ParameterClientOfAFakeTest, ServerThatHasForgottenIsAskedToSend) {
  service_.Forget();

  EXPECT_THAT(worker_.client.Pull(0), IsOkAndHolds(0));

  EXPECT_EQ(worker_.Values(), std::string(48, 'p'));
}

TEST_F(ParameterClientOfAFakeTest, OneCallPullsConsecutivePartsThroughMemory) {
  ASSERT_THAT(worker_.client.Pull(0), IsOkAndHolds(0));
  EXPECT_EQ(service_.times_pulled(), 1);

  // All of them are held now.
  EXPECT_THAT(worker_.client.Pull(0), IsOkAndHolds(0));
  EXPECT_EQ(service_.times_pulled(), 1);
}

TEST_F(ParameterClientOfAFakeTest, PullThatStepsOvertakeReturns) {
  service_.RaiseSteps(60);
  Client remote(absl::StrCat("127.0.0.1:", server_->port()), 0,
                Gradients::kPrivate);

  EXPECT_THAT(remote.client.Pull(0), IsOkAndHolds(3));  // its third answer
  EXPECT_THAT(remote.client.Pull(3), IsOkAndHolds(5));
}

// More parts than a window has calls.
Plan SevenParts() {
  Plan plan = {
      {{"w", {24}, DType::kFloat32, {}}, {"b", {2}, DType::kFloat64, {}}}, {}};
  for (int i = 0; i < 6; ++i) plan.parts.push_back({0, 4 * i, 4, 0, i});
  plan.parts.push_back({1, 0, 2, 0, 6});
  return plan;
}

TEST_F(ParameterClientOfAFakeTest, RestartedServerThatRefusesIsAskedAgain) {
  Client worker(absl::StrCat("127.0.0.1:", server_->port()), 0,
                Gradients::kShared, GradientType::kVariable, SevenParts());
  ASSERT_THAT(worker.client.Pull(0), IsOkAndHolds(0));
  ASSERT_EQ(service_.times_opened(), 1);
  service_.Forget();
  service_.Refuse(true);
  ASSERT_THAT(worker.client.Pull(1), IsOkAndHolds(1));  // finds it forgotten
  ASSERT_THAT(worker.client.Pull(2), IsOkAndHolds(2));
  ASSERT_EQ(service_.times_opened(), 2);
  EXPECT_EQ(worker.Values(), std::string(112, 'p'));

  // Its chunks stay cut for memory, so its calls have no window.
  service_.ExpectPushes(7);
  EXPECT_OK(worker.client.Push({2, 1, 0}, 0));
  EXPECT_EQ(service_.most_pushes(), 7);

  service_.Forget(false);
  service_.Refuse(false);
  const absl::Time late = absl::Now() + absl::Minutes(1);
  for (int64_t step = 3; service_.times_opened() < 3 && absl::Now() < late;
       ++step) {
    ASSERT_THAT(worker.client.Pull(step), IsOkAndHolds(step));
  }
  EXPECT_EQ(service_.times_opened(), 3);
  EXPECT_EQ(worker.Values(), std::string(112, 's'));
}

TEST_F(ParameterClientOfAFakeTest, PlacesThatAreNotThereAreAnError) {
  service_.SayWhereNothingIs();

  EXPECT_THAT(worker_.client.Pull(0).status(),
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace lockstep::testing
