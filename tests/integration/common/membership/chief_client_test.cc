#include "common/membership/chief_client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/codec/job_config_codec.h"
#include "common/process/process.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/wire/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/coordinator.grpc.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// An address at which no process listens. The system gives this port to none.
constexpr char kNobody[] = "127.0.0.1:1";

// The options of worker 0 of a chief that `server` serves.
ChiefClient::Options WorkerOf(const GrpcServer& server) {
  ChiefClient::Options options;
  options.address = absl::StrCat("127.0.0.1:", server.port());
  options.task = {TaskType::kWorker, 0};
  return options;
}

TEST(ChiefClientTest, ChiefThatHasEndedForGoodIsNotWaitedForForEver) {
  ChiefClient::Options options;
  options.address = kNobody;
  options.task = {TaskType::kWorker, 0};
  options.chief_wait = absl::Milliseconds(200);
  ChiefClient client(options);

  // Repeated, as by a worker that was refused and wants to join again.
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(client.Register(),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr(kNobody), HasSubstr("TF_CONFIG"))));
  }
}

TEST(ChiefClientTest, RegistrationSaysThatOnlyTheChiefHasCertificates) {
  const testing::TempDir directory;
  testing::WriteTlsFiles(directory.path(),
                         testing::TestAuthority().Files("chief/0"));
  GrpcServer::Options secured;
  secured.security = TransportSecurity::Load({directory.path(), ""}).value();
  const auto server = GrpcServer::Start("127.0.0.1:0", {}, secured).value();
  ChiefClient::Options options = WorkerOf(*server);
  options.chief_wait = absl::Milliseconds(200);
  ChiefClient client(options);

  EXPECT_THAT(client.Register(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("lockstep://fashion/chief/0"),
                             HasSubstr("speaks TLS"), HasSubstr("--tls_dir"))));
}

// Such as a worker, whose server answers questions for its health alone.
TEST(ChiefClientTest, RegistrationSaysThatAnotherTaskIsTakenForTheChief) {
  const auto server = GrpcServer::Start("127.0.0.1:0", {}).value();
  ChiefClient client(WorkerOf(*server));

  EXPECT_THAT(client.Register(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr(absl::StrCat("127.0.0.1:", server->port(),
                                              " does not serve this call"))));
}

TEST(ChiefClientTest, WaitForTheChiefEndsWhenToldSo) {
  ChiefClient::Options options;
  options.address = kNobody;
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
  ChiefClient client(WorkerOf(**server));

  const auto membership = client.Register();

  ASSERT_OK(membership);
  EXPECT_GT(membership->incarnation, newest);
}

TEST(ChiefClientTest, NextIncarnationIsAboveThatWhichAServerKnows) {
  AheadChief chief(0);
  const auto server = GrpcServer::Start("127.0.0.1:0", {&chief});
  ASSERT_OK(server);
  ChiefClient client(WorkerOf(**server));
  const uint64_t newest = DrawIncarnation() + 7'200'000'000;

  client.OnRefusedByServer(newest);
  client.OnRefusedByServer(~uint64_t{0});  // which no process can have drawn

  const auto membership = client.Register();
  ASSERT_OK(membership);
  EXPECT_GT(membership->incarnation, newest);
}

// A chief that lets every task into a job with these heartbeats.
class OneJobChief : public v1::CoordinatorService::CallbackService {
 public:
  explicit OneJobChief(absl::Duration heartbeat) : heartbeat_(heartbeat) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::RegisterRequest*,
                                     v1::RegisterResponse* response) override {
    JobConfig job;
    job.train_steps = 1;
    job.batch_size = 1;
    job.model.kind = kExternalModel;  // needs no data
    job.heartbeat_interval = heartbeat_;
    job.lease = std::max(job.lease, 3 * heartbeat_);
    job.max_wait = std::max(job.max_wait, 10 * heartbeat_);
    *response->mutable_job() = ToProto(job);
    return Answer(context, absl::OkStatus());
  }

 protected:
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }

 private:
  const absl::Duration heartbeat_;
};

// A chief that gives its history away, is away for one heartbeat, and tells
// the next one.
class ReturningChief final : public OneJobChief {
 public:
  ReturningChief() : OneJobChief(absl::Milliseconds(10)) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override {
    response->add_workers(0);
    response->add_workers(4);
    return OneJobChief::Register(context, request, response);
  }

  grpc::ServerUnaryReactor* Heartbeat(
      grpc::CallbackServerContext* context, const v1::HeartbeatRequest* request,
      v1::HeartbeatResponse* response) override {
    const int number = ++heartbeats_;
    if (number == 1) {
      response->mutable_history()->mutable_training_time()->set_seconds(7);
    }
    if (number == 3) told_.set_value(*request);
    return Answer(context, number == 2 ? absl::UnavailableError("away")
                                       : absl::OkStatus());
  }

  v1::HeartbeatRequest Told() { return told_.get_future().get(); }

 private:
  std::atomic<int> heartbeats_ = 0;
  std::promise<v1::HeartbeatRequest> told_;
};

TEST(ChiefClientTest, ChiefThatComesBackIsToldThePastAndTheWorkers) {
  ReturningChief chief;
  const auto server = GrpcServer::Start("127.0.0.1:0", {&chief});
  ASSERT_OK(server);
  ChiefClient client(WorkerOf(**server));
  ASSERT_OK(client.Register());

  const v1::HeartbeatRequest told = chief.Told();
  EXPECT_GE(told.history().training_time().seconds(), 7);
  EXPECT_THAT(told.workers(), ::testing::ElementsAre(0, 4));
}

// A chief that counts heartbeats, whose interval is longer than the test.
class PatientChief final : public OneJobChief {
 public:
  PatientChief() : OneJobChief(absl::Seconds(300)) {}

  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest*,
                                      v1::HeartbeatResponse*) override {
    const int number = ++heartbeats_;
    if (number == 1) first_.set_value();
    if (number == 2) second_.set_value();
    return Answer(context, absl::OkStatus());
  }

  std::future<void> First() { return first_.get_future(); }
  std::future<void> Second() { return second_.get_future(); }

 private:
  std::atomic<int> heartbeats_ = 0;
  std::promise<void> first_;
  std::promise<void> second_;
};

TEST(ChiefClientTest, MemberThatAServerRefusesAsksTheChiefAtOnce) {
  PatientChief chief;
  std::future<void> second = chief.Second();
  const auto server = GrpcServer::Start("127.0.0.1:0", {&chief});
  ASSERT_OK(server);
  ChiefClient client(WorkerOf(**server));
  ASSERT_OK(client.Register());
  chief.First().wait();
  ASSERT_EQ(second.wait_for(std::chrono::milliseconds(100)),
            std::future_status::timeout);

  client.OnRefusedByServer(0);

  EXPECT_EQ(second.wait_for(std::chrono::seconds(60)),
            std::future_status::ready);
}

// A chief that takes its member for dead while it sends initial values. Its
// answers to heartbeats come later than that.
class ForgetfulChief final : public OneJobChief {
 public:
  ForgetfulChief() : OneJobChief(JobConfig().heartbeat_interval) {}

  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest*,
                                      v1::HeartbeatResponse*) override {
    return Answer(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* DescribeModel(grpc::CallbackServerContext* context,
                                          const v1::DescribeModelRequest*,
                                          v1::DescribeModelResponse*) override {
    return Answer(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* GetPlan(grpc::CallbackServerContext* context,
                                    const v1::GetPlanRequest*,
                                    v1::GetPlanResponse* response) override {
    response->set_values_wanted(true);
    return Answer(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* PutInitialValues(
      grpc::CallbackServerContext* context, const v1::PutInitialValuesRequest*,
      v1::PutInitialValuesResponse*) override {
    return Answer(context, absl::AbortedError("taken for dead"));
  }

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest*,
                                  v1::LeaveResponse*) override {
    return Answer(context, absl::OkStatus());
  }
};

TEST(ChiefClientTest, MemberWhoseInitialValuesComeTooLateMayRegisterAgain) {
  ForgetfulChief chief;
  const auto server = GrpcServer::Start("127.0.0.1:0", {&chief});
  ASSERT_OK(server);
  ChiefClient client(WorkerOf(**server));
  ASSERT_OK(client.Register());
  VariableSpec variable;
  variable.name = "w";
  variable.shape = {2};
  variable.initializer.kind = Initializer::Kind::kGiven;
  ASSERT_OK(client.DescribeModel({variable}, std::nullopt));
  const std::vector<std::byte> value(2 * sizeof(float));

  int64_t step = 0;
  const auto plan = client.WaitForPlan(
      1, step, [&](size_t) { return absl::Span<const std::byte>(value); });

  EXPECT_THAT(plan, StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(client.lease_lost());
  // The next registration begins a membership anew.
  EXPECT_OK(client.Register());
  EXPECT_FALSE(client.lease_lost());
  client.Leave(LeaveCause::kStopped, "the test is over");
}

}  // namespace
}  // namespace lockstep
