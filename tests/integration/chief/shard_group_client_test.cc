#include "chief/shard_group_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kServers = 8;
constexpr absl::Duration kDelay = absl::Milliseconds(500);

// A server that takes its time over everything.
class SlowServer final : public v1::ShardControlService::Service {
 public:
  explicit SlowServer(bool broken) : broken_(broken) {}

  grpc::Status TakeEpoch(grpc::ServerContext* /*context*/,
                         const v1::TakeEpochRequest* request,
                         v1::TakeEpochResponse* response) override {
    absl::SleepFor(kDelay);
    response->set_epoch(request->newer_than() + 1);
    return grpc::Status::OK;
  }
  grpc::Status Activate(grpc::ServerContext* /*context*/,
                        const v1::ActivateRequest* /*request*/,
                        v1::ActivateResponse* /*response*/) override {
    absl::SleepFor(kDelay);
    if (broken_) return {grpc::StatusCode::INTERNAL, "broken"};
    return grpc::Status::OK;
  }
  grpc::Status ExpireWorker(grpc::ServerContext* /*context*/,
                            const v1::ExpireWorkerRequest* /*request*/,
                            v1::ExpireWorkerResponse* /*response*/) override {
    absl::SleepFor(kDelay);
    return grpc::Status::OK;
  }

 private:
  const bool broken_;
};

class ShardGroupClientTest : public ::testing::Test {
 protected:
  // The last but one server cannot be opened if `broken`.
  void Start(bool broken = false) {
    std::vector<std::string> addresses;
    for (int i = 0; i < kServers; ++i) {
      services_.push_back(
          std::make_unique<SlowServer>(broken && i == kServers - 2));
      auto server = GrpcServer::Start("127.0.0.1:0", {services_.back().get()});
      ASSERT_OK(server);
      addresses.push_back(absl::StrCat("127.0.0.1:", (*server)->port()));
      servers_.push_back(*std::move(server));
    }
    group_ = std::make_unique<chief::ShardGroupClient>(
        addresses, Sender{"job-1", {TaskType::kChief, 0}, 1});
  }

  std::vector<std::unique_ptr<SlowServer>> services_;
  std::vector<std::unique_ptr<GrpcServer>> servers_;
  std::unique_ptr<chief::ShardGroupClient> group_;
};

// ps 0 is asked before or after the others: twice a delay for each call, where
// one server after the other would be `kServers` delays.
TEST_F(ShardGroupClientTest, AllServersAreAskedTogether) {
  Start();
  absl::Time began = absl::Now();
  // The time since the call before.
  const auto took = [&began] {
    const absl::Time now = absl::Now();
    return now - std::exchange(began, now);
  };

  EXPECT_THAT(group_->TakeEpoch(), IsOkAndHolds(2));
  EXPECT_LT(took(), kServers * kDelay * 0.75);
  EXPECT_OK(group_->Activate({}));
  EXPECT_LT(took(), kServers * kDelay * 0.75);
  EXPECT_OK(group_->ExpireWorker(1, 5, "killed"));
  EXPECT_LT(took(), kServers * kDelay * 0.75);
}

TEST_F(ShardGroupClientTest, FailureOfOneIsThatOfAll) {
  Start(/*broken=*/true);

  EXPECT_THAT(
      group_->Activate({}),
      StatusIs(absl::StatusCode::kInternal,
               HasSubstr(absl::StrCat("ps ", kServers - 2, ": broken"))));
}

}  // namespace
}  // namespace lockstep::testing
