#include "common/membership/chief_client.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/codec/job_config_codec.h"
#include "common/process/process.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/wire/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/coordinator.grpc.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// An address at which no process listens any more.
std::string EndedChief() {
  const auto server = GrpcServer::Start("127.0.0.1:0", {});
  EXPECT_OK(server);
  return absl::StrCat("127.0.0.1:", (*server)->port());
}

TEST(ChiefClientTest, ChiefThatHasEndedForGoodIsNotWaitedForForEver) {
  const std::string address = EndedChief();
  ChiefClient::Options options;
  options.address = address;
  options.task = {TaskType::kWorker, 0};
  options.chief_wait = absl::Milliseconds(200);
  ChiefClient client(options);

  // Repeated, as by a worker that was refused and wants to join again.
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(client.Register(),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr(address), HasSubstr("TF_CONFIG"))));
  }
}

TEST(ChiefClientTest, WaitForTheChiefEndsWhenToldSo) {
  ChiefClient::Options options;
  options.address = EndedChief();
  options.task = {TaskType::kWorker, 0};
  ChiefClient client(options);
  client.Stop();

  EXPECT_THAT(client.Register(), StatusIs(absl::StatusCode::kCancelled));
}

// A chief that knows a newer incarnation of every task that registers first.
class AheadChief final : public v1::CoordinatorService::CallbackService {
 public:
  explicit AheadChief(uint64_t newest) : newest_(newest) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override {
    const uint64_t incarnation = request->identity().incarnation();
    JobConfig job;
    job.train_steps = 1;
    job.batch_size = 1;
    job.model.kind = kExternalModel;  // needs no data
    *response->mutable_job() = ToProto(job);
    const absl::Status status =
        incarnation > newest_
            ? absl::OkStatus()
            : WithNewestIncarnation(absl::FailedPreconditionError("older"),
                                    newest_);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }

 private:
  const uint64_t newest_;
};

TEST(ChiefClientTest, TaskTakesThePlaceOfAnIncarnationWhoseClockWasAhead) {
  const uint64_t newest = DrawIncarnation() + 3'600'000'000;  // an hour
  AheadChief chief(newest);
  const auto server = GrpcServer::Start("127.0.0.1:0", {&chief});
  ASSERT_OK(server);
  ChiefClient::Options options;
  options.address = absl::StrCat("127.0.0.1:", (*server)->port());
  options.task = {TaskType::kWorker, 0};
  ChiefClient client(options);

  const auto membership = client.Register();

  ASSERT_OK(membership);
  EXPECT_GT(membership->incarnation, newest);
}

TEST(ChiefClientTest, NextIncarnationIsAboveThatWhichAServerKnows) {
  AheadChief chief(0);
  const auto server = GrpcServer::Start("127.0.0.1:0", {&chief});
  ASSERT_OK(server);
  ChiefClient::Options options;
  options.address = absl::StrCat("127.0.0.1:", (*server)->port());
  options.task = {TaskType::kWorker, 0};
  ChiefClient client(options);
  const uint64_t newest = DrawIncarnation() + 7'200'000'000;

  client.OnNewerIncarnation(newest);
  client.OnNewerIncarnation(~uint64_t{0});  // which no process can have drawn

  const auto membership = client.Register();
  ASSERT_OK(membership);
  EXPECT_GT(membership->incarnation, newest);
}

}  // namespace
}  // namespace lockstep
