#include "chief/servers/shard_control_client.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/server.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

// A call that is only given up at its deadline takes 10 s.
constexpr absl::Duration kPromptly = absl::Seconds(9);
constexpr int kCalls = 8;

// Never answers: a call ends when its client gives it up.
class ParkedReactor final : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

// A server on which every call of a step waits for ever.
class ParkingService final : public v1::ShardControlService::CallbackService {
 public:
  grpc::ServerUnaryReactor* TakeAndApply(
      grpc::CallbackServerContext* /*context*/,
      const v1::TakeAndApplyRequest* /*request*/,
      v1::TakeAndApplyResponse* /*response*/) override {
    return Park();
  }
  grpc::ServerUnaryReactor* Commit(grpc::CallbackServerContext* /*context*/,
                                   const v1::CommitRequest* /*request*/,
                                   v1::CommitResponse* /*response*/) override {
    return Park();
  }

  grpc::ServerUnaryReactor* TakeEpoch(
      grpc::CallbackServerContext* context,
      const v1::TakeEpochRequest* /*request*/,
      v1::TakeEpochResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (++epochs_asked_ < 3) {
      reactor->Finish({grpc::StatusCode::UNAVAILABLE, "not yet registered"});
      return reactor;
    }
    response->set_epoch(7);
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  // The copy of a step has been made at once.
  grpc::ServerUnaryReactor* BeginSnapshot(
      grpc::CallbackServerContext* context,
      const v1::BeginSnapshotRequest* request,
      v1::BeginSnapshotResponse* response) override {
    response->set_global_step(request->global_step());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  // Answers with the text of the test, at any range.
  grpc::ServerUnaryReactor* ReadSnapshot(
      grpc::CallbackServerContext* context,
      const v1::ReadSnapshotRequest* /*request*/,
      v1::ReadSnapshotResponse* response) override {
    *response = snapshot_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  // Set while there is no call.
  void set_snapshot(const v1::ReadSnapshotResponse& snapshot) {
    snapshot_ = snapshot;
  }
  // Returns once `calls` have come in.
  void WaitFor(int calls) {
    while (parked_ < calls) absl::SleepFor(absl::Milliseconds(1));
  }

 private:
  grpc::ServerUnaryReactor* Park() {
    ++parked_;
    return new ParkedReactor();
  }

  std::atomic<int> parked_ = 0;
  std::atomic<int> epochs_asked_ = 0;
  v1::ReadSnapshotResponse snapshot_;
};

// What callbacks saw. The client goes before it.
struct Outcome {
  std::atomic<bool> client_is_gone = false;
  std::atomic<int> calls = 0;
  std::atomic<int> cancelled = 0;
  std::atomic<int> unavailable = 0;
  std::atomic<int> late = 0;  // ran when the client was gone

  void Record(const absl::Status& status) {
    if (client_is_gone) ++late;
    if (absl::IsCancelled(status)) ++cancelled;
    if (absl::IsUnavailable(status)) ++unavailable;
    ++calls;
  }
};

class ShardControlClientTest : public ::testing::Test {
 protected:
  ShardControlClientTest() {
    auto server = GrpcServer::Start("127.0.0.1:0", {&service_});
    EXPECT_OK(server);
    if (server.ok()) server_ = *std::move(server);
  }

  // Talks to the parking server, if there is no other address.
  std::unique_ptr<chief::ShardControlClient> Client(
      std::string address = "") const {
    if (address.empty() && server_ != nullptr) {
      address = absl::StrCat("127.0.0.1:", server_->port());
    }
    return std::make_unique<chief::ShardControlClient>(
        address, Sender{"job-1", {TaskType::kChief, 0}, 1});
  }

  // Has `client` make kCalls calls, of both kinds in turn.
  void Ask(chief::ShardControlClient& client) {
    for (int i = 0; i < kCalls; ++i) {
      if (i % 2 == 0) {
        client.TakeAndApply(i, 0, 0, std::nullopt,
                            [this](const absl::Status& status, const auto&) {
                              outcome_.Record(status);
                            });
      } else {
        client.Commit(i, 1, {},
                      [this](const absl::Status& status, const auto&) {
                        outcome_.Record(status);
                      });
      }
    }
  }

  Outcome outcome_;
  ParkingService service_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(ShardControlClientTest, SetupWaitsForAServerThatIsNotUpYet) {
  EXPECT_THAT(Client()->TakeEpoch(0), IsOkAndHolds(7u));
}

TEST_F(ShardControlClientTest, BytesOfASnapshotAreThoseThatWereAskedFor) {
  const auto client = Client();
  const auto snapshot = client->BeginSnapshot(7);
  ASSERT_OK(snapshot);
  ASSERT_EQ(snapshot->global_step, 7);
  std::string bytes(8, '?');
  const auto read = [&](int64_t step, const std::string& payload) {
    v1::ReadSnapshotResponse answer;
    answer.mutable_header()->set_global_step(step);
    answer.set_payload(payload);
    service_.set_snapshot(answer);
    return client->ReadSnapshot({0, 0, 0, 2}, absl::MakeSpan(bytes));
  };
  for (const char* wrong : {"", "1234567", "123456789"}) {
    EXPECT_THAT(read(7, wrong), StatusIs(absl::StatusCode::kInternal,
                                         HasSubstr("; 8 were asked for")))
        << wrong;
  }
  EXPECT_THAT(read(8, "12345678"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("was replaced by one of step 8")));
  EXPECT_EQ(bytes, "????????");
  ASSERT_OK(read(7, "12345678"));
  EXPECT_EQ(bytes, "12345678");
}

TEST_F(ShardControlClientTest, DestructionEndsParkedCallsPromptly) {
  auto client = Client();
  Ask(*client);
  service_.WaitFor(kCalls);
  const absl::Time began = absl::Now();

  client.reset();
  outcome_.client_is_gone = true;

  EXPECT_LT(absl::Now() - began, kPromptly);
  EXPECT_EQ(outcome_.calls, kCalls);
  EXPECT_EQ(outcome_.cancelled, kCalls);
  server_.reset();  // ends calls that might still be under way
  EXPECT_EQ(outcome_.calls, kCalls);
  EXPECT_EQ(outcome_.late, 0);
}

// Each round ends calls in another state: on their way, parked or connecting.
// The last reference to each channel must go in this thread.
TEST_F(ShardControlClientTest, DestructionRightAfterTheCallsIsSafe) {
  constexpr int kRounds = 50;

  for (int round = 0; round < kRounds; ++round) {
    auto client = Client();
    Ask(*client);
    if (round % 2 == 0) absl::SleepFor(absl::Microseconds(100 * round));
    client.reset();
    EXPECT_EQ(outcome_.calls, kCalls * (round + 1));
  }
}

TEST_F(ShardControlClientTest, DestructionWaitsForTheCallbackThatIsRunning) {
  auto client = Client();
  absl::Notification entered;
  std::atomic<bool> left = false;
  client->TakeAndApply(0, 0, 0, std::nullopt,
                       [&](const absl::Status&, const auto&) {
                         entered.Notify();
                         absl::SleepFor(absl::Milliseconds(100));
                         left = true;
                       });
  service_.WaitFor(1);
  server_.reset();  // ends the call
  entered.WaitForNotification();

  client.reset();

  EXPECT_TRUE(left);
}

// The server's next process takes the same calls.
TEST_F(ShardControlClientTest, CallsThatAServerEndsAsItShutsDownMayBeRepeated) {
  auto client = Client();
  Ask(*client);
  service_.WaitFor(kCalls);

  server_->Shutdown(absl::ZeroDuration());
  while (outcome_.calls < kCalls) absl::SleepFor(absl::Milliseconds(1));

  EXPECT_EQ(outcome_.unavailable, kCalls);
}

TEST_F(ShardControlClientTest, DestructionWithoutAServerIsPrompt) {
  auto client = Client("192.0.2.1:1");  // an address for documentation only
  const absl::Time began = absl::Now();
  Ask(*client);

  client.reset();

  EXPECT_LT(absl::Now() - began, kPromptly);
  EXPECT_EQ(outcome_.calls, kCalls);
}

TEST_F(ShardControlClientTest, CallsAfterShutdownEndAtOnce) {
  auto client = Client();
  client->Shutdown();
  const absl::Time began = absl::Now();

  Ask(*client);
  client.reset();

  EXPECT_LT(absl::Now() - began, kPromptly);
  EXPECT_EQ(outcome_.cancelled, kCalls);
}

TEST_F(ShardControlClientTest, ShutdownMayBeRepeated) {
  auto client = Client();
  Ask(*client);

  client->Shutdown();
  client->Shutdown();

  EXPECT_EQ(outcome_.calls, kCalls);
}

TEST_F(ShardControlClientTest, CallbackMayCallAgainDuringShutdown) {
  auto client = Client();
  client->TakeAndApply(
      0, 0, 0, std::nullopt, [&](const absl::Status& status, const auto&) {
        outcome_.Record(status);
        client->Commit(1, 1, {}, [&](const absl::Status& again, const auto&) {
          outcome_.Record(again);
        });
      });
  service_.WaitFor(1);

  client->Shutdown();

  EXPECT_EQ(outcome_.cancelled, 2);
}

}  // namespace
}  // namespace lockstep::testing
