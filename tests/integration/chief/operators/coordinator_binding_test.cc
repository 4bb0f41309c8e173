// A caller of the chief must not speak for another task.

#include <optional>

#include "absl/strings/str_cat.h"
#include "chief/operators/coordinator_service.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/integration/common/rpc/security/raw_credentials.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Stub = v1::CoordinatorService::Stub;
constexpr absl::StatusCode kDenied = absl::StatusCode::kPermissionDenied;
constexpr char kJobId[] = "job-1";

JobConfig Job() {
  JobConfig job;
  job.name = "fashion";
  job.train_steps = 100;
  job.batch_size = 1;
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 2;
  return job;
}

class CoordinatorBindingTest : public ::testing::Test {
 protected:
  CoordinatorBindingTest() {
    WriteTlsFiles(directory_.path(), authority_.Files("chief/0"));
    SetOwnSecurity(TransportSecurity::Load({directory_.path(), ""}).value());
    server_ = GrpcServer::Start("127.0.0.1:0", {&service_}).value();
  }
  ~CoordinatorBindingTest() override {
    server_.reset();
    SetOwnSecurity(nullptr);
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> CallAs(
      const std::string& name,
      grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&,
                                Response*),
      const Request& request) {
    return CallWith(authority_.Issue(name), rpc, request);
  }
  template <typename Request, typename Response>
  absl::StatusOr<Response> CallWith(
      const CertifiedKey& pair,
      grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&,
                                Response*),
      const Request& request) {
    const auto stub = v1::CoordinatorService::NewStub(
        UncheckedChannel(absl::StrCat("127.0.0.1:", server_->port()),
                         authority_.certificate(), pair));
    return Call(*stub, rpc, request);
  }

  template <typename Request>
  static Request From(TaskType type, int index) {
    Request request;
    *request.mutable_identity() = ToProto(Sender{kJobId, {type, index}, 1});
    return request;
  }
  static v1::HeartbeatRequest Heartbeat() {
    auto request = From<v1::HeartbeatRequest>(TaskType::kWorker, 0);
    request.set_protocol_version(kProtocolVersion);
    return request;
  }

  const TestAuthority authority_;
  const TempDir directory_;
  ManualClock clock_;
  chief::MembershipTable members_{{{TaskType::kPs, 0},
                                   {TaskType::kWorker, 0},
                                   {TaskType::kWorker, 1},
                                   {TaskType::kEvaluator, 0}},
                                  absl::Seconds(2)};
  chief::StatusTable table_;
  chief::SettingsTable settings_{Job()};
  int stops_ = 0;
  chief::CoordinatorService service_{
      chief::CoordinatorService::Options{
          kJobId, Job(), /*num_workers=*/2, /*has_evaluator=*/true,
          [this](const std::string&, bool) { ++stops_; }},
      members_, table_, settings_, clock_};
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(CoordinatorBindingTest, MemberCannotSpeakInAnothersName) {
  const std::string other = "worker/1";
  const auto denied = StatusIs(kDenied, HasSubstr("from worker 0"));
  const TaskType worker = TaskType::kWorker;
  EXPECT_THAT(
      CallAs(other, &Stub::Register, From<v1::RegisterRequest>(worker, 0)),
      denied);
  EXPECT_THAT(CallAs(other, &Stub::DescribeModel,
                     From<v1::DescribeModelRequest>(worker, 0)),
              denied);
  EXPECT_THAT(
      CallAs(other, &Stub::GetPlan, From<v1::GetPlanRequest>(worker, 0)),
      denied);
  EXPECT_THAT(CallAs(other, &Stub::Heartbeat, Heartbeat()), denied);
  EXPECT_THAT(CallAs(other, &Stub::Leave, From<v1::LeaveRequest>(worker, 0)),
              denied);
  EXPECT_THAT(
      CallAs("evaluator/1", &Stub::ReportEvaluation,
             From<v1::ReportEvaluationRequest>(TaskType::kEvaluator, 0)),
      StatusIs(kDenied, HasSubstr("from evaluator 0")));
  EXPECT_THAT(CallAs(other, &Stub::Register,
                     From<v1::RegisterRequest>(TaskType::kPs, 0)),
              StatusIs(kDenied, HasSubstr("from ps 0")));
}

TEST_F(CoordinatorBindingTest, MemberSpeaksForItself) {
  EXPECT_OK(CallAs("worker/0", &Stub::Heartbeat, Heartbeat()));
  EXPECT_OK(CallAs("worker/*", &Stub::Heartbeat, Heartbeat()));
}

TEST_F(CoordinatorBindingTest, ServerStopsTheJobButCannotHoldIt) {
  v1::StopRequest request;
  EXPECT_OK(CallAs("ps/0", &Stub::Stop, request));
  EXPECT_EQ(stops_, 1);
  request.set_hold(true);
  EXPECT_THAT(CallAs("ps/0", &Stub::Stop, request), StatusIs(kDenied));
  EXPECT_EQ(stops_, 1);
  EXPECT_OK(CallAs("operator/steer", &Stub::Stop, request));
  EXPECT_EQ(stops_, 2);
}

TEST_F(CoordinatorBindingTest, ServerCannotStopTheJobInAnothersName) {
  v1::StopRequest request;
  request.set_task_type("ps");
  request.set_task_index(1);
  EXPECT_THAT(CallAs("ps/0", &Stub::Stop, request),
              StatusIs(kDenied, HasSubstr("from ps 1")));
  EXPECT_EQ(stops_, 0);
  EXPECT_OK(CallAs("ps/1", &Stub::Stop, request));
  EXPECT_EQ(stops_, 1);
}

TEST_F(CoordinatorBindingTest, CertificateThatExpiresSoonIsInTheStatus) {
  const CertifiedKey soon = authority_.Issue(
      "worker/0",
      {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(73)});
  ASSERT_OK(CallWith(soon, &Stub::Heartbeat, Heartbeat()));
  const auto status =
      CallAs("operator/read", &Stub::GetStatus, v1::GetStatusRequest());
  ASSERT_OK(status);
  EXPECT_THAT(status->security_troubles(),
              Contains(HasSubstr("the certificate of lockstep://fashion/worker/"
                                 "0 expires in 3 days")));
}

TEST_F(CoordinatorBindingTest, OnlyMembersLearnIdentities) {
  auto request = From<v1::RegisterRequest>(TaskType::kWorker, 0);
  request.set_protocol_version(kProtocolVersion);
  ASSERT_OK(CallAs("worker/0", &Stub::Register, request));
  for (const char* name : {"operator/read", "operator/steer", "worker/1"}) {
    const auto status = CallAs(name, &Stub::GetStatus, v1::GetStatusRequest());
    ASSERT_OK(status);
    EXPECT_EQ(status->job_name(), "fashion");
    const bool is_member = name == std::string("worker/1");
    EXPECT_EQ(status->job_id(), is_member ? kJobId : "") << name;
    bool told = false;
    for (const v1::MemberStatus& member : status->members()) {
      told = told || member.incarnation() != 0;
    }
    EXPECT_EQ(told, is_member) << name;
  }
}

TEST_F(CoordinatorBindingTest, RefusedConnectionIsInTheStatus) {
  const CertifiedKey late = authority_.Issue(
      "worker/0",
      {absl::Now() - absl::Hours(2), absl::Now() - absl::Minutes(4)});
  EXPECT_FALSE(CallWith(late, &Stub::Heartbeat, Heartbeat()).ok());
  const auto status =
      CallAs("operator/read", &Stub::GetStatus, v1::GetStatusRequest());
  ASSERT_OK(status);
  EXPECT_THAT(status->security_troubles(),
              Contains(HasSubstr("lockstep://fashion/worker/0 expired 4 min")));
}

}  // namespace
}  // namespace lockstep::testing
