#include "chief/shard_group_client.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kServers = 8;
// Calls that wait for one another.
class Meeting {
 public:
  // Returns when all servers but ps 0 are in a call, or have been; or after a
  // while.
  void Join() {
    MutexLock lock(mutex_);
    most_ = std::max(most_, ++here_);
    changed_.SignalAll();
    while (most_ < kServers - 1 &&
           changed_.WaitFor(mutex_, std::chrono::seconds(5))) {
    }
    --here_;
  }
  // Whether they were in a call together; begins anew.
  bool Met() {
    MutexLock lock(mutex_);
    return std::exchange(most_, 0) == kServers - 1;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int here_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A server whose calls end when they have met those of the others. That of ps 0
// has no meeting.
class MeetingServer final : public v1::ShardControlService::Service {
 public:
  MeetingServer(Meeting* meeting, bool broken)
      : meeting_(meeting), broken_(broken) {}

  grpc::Status TakeEpoch(grpc::ServerContext* /*context*/,
                         const v1::TakeEpochRequest* request,
                         v1::TakeEpochResponse* response) override {
    Meet();
    response->set_epoch(request->newer_than() + 1);
    return grpc::Status::OK;
  }
  grpc::Status Activate(grpc::ServerContext* /*context*/,
                        const v1::ActivateRequest* /*request*/,
                        v1::ActivateResponse* /*response*/) override {
    Meet();
    if (broken_) return {grpc::StatusCode::INTERNAL, "broken"};
    return grpc::Status::OK;
  }
  grpc::Status ExpireWorker(grpc::ServerContext* /*context*/,
                            const v1::ExpireWorkerRequest* /*request*/,
                            v1::ExpireWorkerResponse* /*response*/) override {
    Meet();
    return grpc::Status::OK;
  }

 private:
  void Meet() {
    if (meeting_ != nullptr) meeting_->Join();
  }

  Meeting* const meeting_;
  const bool broken_;
};

class ShardGroupClientTest : public ::testing::Test {
 protected:
  // The last but one server cannot be opened if `broken`.
  void Start(bool broken = false) {
    std::vector<std::string> addresses;
    for (int i = 0; i < kServers; ++i) {
      services_.push_back(std::make_unique<MeetingServer>(
          i == 0 ? nullptr : &meeting_, broken && i == kServers - 2));
      auto server = GrpcServer::Start("127.0.0.1:0", {services_.back().get()});
      ASSERT_OK(server);
      addresses.push_back(absl::StrCat("127.0.0.1:", (*server)->port()));
      servers_.push_back(*std::move(server));
    }
    group_ = std::make_unique<chief::ShardGroupClient>(
        addresses, Sender{"job-1", {TaskType::kChief, 0}, 1});
  }

  Meeting meeting_;
  std::vector<std::unique_ptr<MeetingServer>> services_;
  std::vector<std::unique_ptr<GrpcServer>> servers_;
  std::unique_ptr<chief::ShardGroupClient> group_;
};

// ps 0 may be asked before or after the others.
TEST_F(ShardGroupClientTest, AllServersAreAskedTogether) {
  Start();

  EXPECT_THAT(group_->TakeEpoch(), IsOkAndHolds(2));
  EXPECT_TRUE(meeting_.Met());
  EXPECT_OK(group_->Activate({}));
  EXPECT_TRUE(meeting_.Met());
  EXPECT_OK(group_->ExpireWorker(1, 5, "killed"));
  EXPECT_TRUE(meeting_.Met());
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
