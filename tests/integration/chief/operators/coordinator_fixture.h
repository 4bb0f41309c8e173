#ifndef LOCKSTEP_TESTS_INTEGRATION_CHIEF_OPERATORS_COORDINATOR_FIXTURE_H_
#define LOCKSTEP_TESTS_INTEGRATION_CHIEF_OPERATORS_COORDINATOR_FIXTURE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/operators/coordinator_service.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

inline constexpr char kJobId[] = "job-1";
inline constexpr absl::Duration kLease = absl::Seconds(2);

inline JobConfig Job() {
  JobConfig job;
  job.name = "job";
  job.train_steps = 100;
  job.batch_size = 1;
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 2;
  job.data.train_images = "images";
  job.data.train_labels = "labels";
  return job;
}

// CoordinatorFixture serves a chief's CoordinatorService on loopback, for one
// server, `workers` workers and an evaluator.
class CoordinatorFixture : public ::testing::Test {
 protected:
  explicit CoordinatorFixture(int workers = 2, bool has_evaluator = true,
                              const JobConfig& job = Job())
      : members_(MembersOf(workers), kLease),
        service_({kJobId, job, workers, has_evaluator,
                  [this](const std::string& reason, bool hold) {
                    stopped_ = reason;
                    hold_ = hold;
                  }},
                 members_, table_, settings_, clock_) {
    auto server = GrpcServer::Start("127.0.0.1:0", {&service_});
    EXPECT_OK(server);
    server_ = *std::move(server);
    channel_ = MakeChannel(absl::StrCat("127.0.0.1:", server_->port()));
    stub_ = v1::CoordinatorService::NewStub(channel_);
  }

  static std::vector<TaskId> MembersOf(int workers) {
    std::vector<TaskId> tasks = {{TaskType::kPs, 0}};
    for (int i = 0; i < workers; ++i) tasks.push_back({TaskType::kWorker, i});
    tasks.push_back({TaskType::kEvaluator, 0});
    return tasks;
  }

  static v1::Identity Task(TaskType type, int index, uint64_t incarnation,
                           const std::string& job_id = kJobId) {
    return ToProto(Sender{job_id, {type, index}, incarnation});
  }
  static v1::Identity Worker(uint64_t incarnation, int index = 0) {
    return Task(TaskType::kWorker, index, incarnation);
  }

  static v1::RegisterRequest Registration(const v1::Identity& identity) {
    v1::RegisterRequest request;
    *request.mutable_identity() = identity;
    request.set_protocol_version(kProtocolVersion);
    return request;
  }
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request) {
    return Call(*stub_, &v1::CoordinatorService::Stub::Register, request);
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::Identity& identity, int version = kProtocolVersion) {
    v1::HeartbeatRequest request;
    *request.mutable_identity() = identity;
    request.set_protocol_version(version);
    return Call(*stub_, &v1::CoordinatorService::Stub::Heartbeat, request);
  }
  absl::Status Describe(const v1::Identity& identity,
                        const VariableSpec& variable) {
    v1::DescribeModelRequest request;
    *request.mutable_identity() = identity;
    *request.add_variables() = ToProto(variable);
    return Call(*stub_, &v1::CoordinatorService::Stub::DescribeModel, request)
        .status();
  }
  absl::Status Describe(const v1::DescribeModelRequest& request) {
    return Call(*stub_, &v1::CoordinatorService::Stub::DescribeModel, request)
        .status();
  }
  absl::Status Evaluate(double accuracy) {
    v1::ReportEvaluationRequest request;
    *request.mutable_identity() = Task(TaskType::kEvaluator, 0, 1);
    request.set_global_step(10);
    request.set_accuracy(accuracy);
    return Call(*stub_, &v1::CoordinatorService::Stub::ReportEvaluation,
                request)
        .status();
  }
  // Cleans up the dead, as the chief's loop does.
  void Bury() {
    for (const auto& dead : members_.TakeDead(clock_.Now())) {
      members_.Buried(dead.task, dead.incarnation);
    }
  }

  ManualClock clock_;
  chief::MembershipTable members_;
  chief::StatusTable table_;
  std::optional<std::string> stopped_;
  chief::SettingsTable settings_{Job()};
  bool hold_ = false;
  chief::CoordinatorService service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::CoordinatorService::Stub> stub_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_CHIEF_OPERATORS_COORDINATOR_FIXTURE_H_
