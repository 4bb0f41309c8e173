#ifndef LOCKSTEP_TESTS_INTEGRATION_WORKER_FAKE_CHIEF_H_
#define LOCKSTEP_TESTS_INTEGRATION_WORKER_FAKE_CHIEF_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/job/codec/job_config_codec.h"
#include "common/rpc/server.h"
#include "grpcpp/server_context.h"
#include "gtest/gtest.h"
#include "lockstep/v1/coordinator.grpc.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

// FakeChief lets every task into a job, gives a worker a plan of the variables
// that it described, all on ps 0, changed as the test wants, and remembers
// what members say. The job starts for ever.
//
// Threads: safe to share.
class FakeChief : public v1::CoordinatorService::Service {
 public:
  using Change = std::function<void(v1::GetPlanResponse& plan)>;

  explicit FakeChief(const JobConfig& job, Change change = nullptr)
      : FakeChief(ToProto(job), std::move(change)) {}
  explicit FakeChief(v1::JobConfig job, Change change = nullptr)
      : job_(std::move(job)), change_(std::move(change)) {
    auto server = GrpcServer::Start("127.0.0.1:0", {this});
    EXPECT_OK(server);
    if (server.ok()) server_ = *std::move(server);
  }
  ~FakeChief() override { server_.reset(); }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }
  // Why the last member left; empty: none has.
  std::string left() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return left_;
  }

  // The activities and troubles that members have reported, each text once.
  std::set<std::string> said() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return said_;
  }

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest*,
                        v1::RegisterResponse* response) override {
    response->set_job_id("job");
    *response->mutable_job() = job_;
    response->set_num_workers(1);
    return grpc::Status::OK;
  }
  grpc::Status DescribeModel(grpc::ServerContext*,
                             const v1::DescribeModelRequest* request,
                             v1::DescribeModelResponse*) override {
    MutexLock lock(mutex_);
    model_ = *request;
    return grpc::Status::OK;
  }
  grpc::Status GetPlan(grpc::ServerContext*, const v1::GetPlanRequest*,
                       v1::GetPlanResponse* response) override {
    MutexLock lock(mutex_);
    response->set_ready(true);
    *response->mutable_variables() = model_.variables();
    for (int i = 0; i < model_.variables_size(); ++i) {
      int64_t count = 1;
      for (const int64_t dim : model_.variables(i).shape()) count *= dim;
      v1::Part& part = *response->add_parts();
      part.set_variable(i);
      part.set_index(i);
      part.set_count(count);
    }
    if (change_) change_(*response);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*,
                         const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    MutexLock lock(mutex_);
    said_.insert(request->progress().activity());
    said_.insert(request->progress().trouble());
    response->set_state(v1::JOB_STARTING);
    return grpc::Status::OK;
  }
  grpc::Status Leave(grpc::ServerContext*, const v1::LeaveRequest* request,
                     v1::LeaveResponse*) override {
    MutexLock lock(mutex_);
    left_ = request->reason();
    return grpc::Status::OK;
  }

 private:
  const v1::JobConfig job_;
  const Change change_;
  mutable Mutex mutex_;
  v1::DescribeModelRequest model_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> said_ ABSL_GUARDED_BY(mutex_);
  std::string left_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_WORKER_FAKE_CHIEF_H_
