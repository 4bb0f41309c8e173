#ifndef LOCKSTEP_TESTS_INTEGRATION_DEPLOY_CLI_STATUS_FAKE_COORDINATOR_SERVICE_H_
#define LOCKSTEP_TESTS_INTEGRATION_DEPLOY_CLI_STATUS_FAKE_COORDINATOR_SERVICE_H_

#include <fstream>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/rpc/server.h"
#include "gtest/gtest.h"
#include "lockstep/v1/coordinator.grpc.pb.h"

namespace lockstep::testing {

// FakeCoordinator is a chief whose answers a test sets.
//
// Threads: safe to share.
class FakeCoordinator final : public v1::CoordinatorService::Service {
 public:
  explicit FakeCoordinator(const std::string& address = "127.0.0.1:0") {
    auto server = GrpcServer::Start(address, {this});
    EXPECT_TRUE(server.ok()) << server.status();
    if (server.ok()) server_ = *std::move(server);
  }
  ~FakeCoordinator() override { Shutdown(); }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }

  void Say(const v1::GetStatusResponse& response) {
    MutexLock lock(mutex_);
    response_ = response;
  }

  // Makes the file `path` when a caller that waits for each answer has one: it
  // asks again.
  void MarkHeard(const std::string& path) {
    MutexLock lock(mutex_);
    heard_path_ = path;
  }

  void RefuseToStop() {
    MutexLock lock(mutex_);
    refuses_ = true;
  }

  // The reason of the last Stop; empty if there was none.
  std::string stop_reason() const {
    MutexLock lock(mutex_);
    return stop_reason_;
  }

  // The newest ChangeSettings. It increases the revision by one and takes
  // effect at once, unless `effective` is false.
  v1::ChangeSettingsRequest change() const {
    MutexLock lock(mutex_);
    return change_;
  }
  void set_effective(bool effective) {
    MutexLock lock(mutex_);
    effective_ = effective;
  }

  // Returns when a Stop has arrived.
  void WaitForStop() {
    MutexLock lock(mutex_);
    while (stop_reason_.empty()) stopped_.Wait(mutex_);
  }

  void Shutdown() { server_->Shutdown(absl::ZeroDuration()); }

  grpc::Status GetStatus(grpc::ServerContext* /*context*/,
                         const v1::GetStatusRequest* /*request*/,
                         v1::GetStatusResponse* response) override {
    MutexLock lock(mutex_);
    if (++asked_ == 2 && !heard_path_.empty()) std::ofstream(heard_path_) << "";
    *response = response_;
    return grpc::Status::OK;
  }

  grpc::Status ChangeSettings(grpc::ServerContext* /*context*/,
                              const v1::ChangeSettingsRequest* request,
                              v1::ChangeSettingsResponse* response) override {
    MutexLock lock(mutex_);
    if (request->replicas_to_aggregate() > 99) {
      return {grpc::StatusCode::FAILED_PRECONDITION, "too many"};
    }
    change_ = *request;
    v1::RunSettings& settings = *response_.mutable_settings();
    response->set_revision(settings.revision() + 1);
    if (!effective_) return grpc::Status::OK;
    settings.set_revision(response->revision());
    settings.set_paused(request->paused());
    return grpc::Status::OK;
  }

  grpc::Status Checkpoint(grpc::ServerContext* /*context*/,
                          const v1::CheckpointRequest* /*request*/,
                          v1::CheckpointResponse* response) override {
    MutexLock lock(mutex_);
    response->set_global_step(response_.global_step());
    if (effective_) {
      response_.set_last_checkpoint_step(response_.global_step());
    }
    return grpc::Status::OK;
  }

  grpc::Status Stop(grpc::ServerContext* /*context*/,
                    const v1::StopRequest* request,
                    v1::StopResponse* /*response*/) override {
    MutexLock lock(mutex_);
    if (refuses_) return {grpc::StatusCode::INTERNAL, "not today"};
    stop_reason_ = request->reason();
    stopped_.SignalAll();
    return grpc::Status::OK;
  }

 private:
  std::unique_ptr<GrpcServer> server_;

  mutable Mutex mutex_;
  CondVar stopped_;
  v1::GetStatusResponse response_ ABSL_GUARDED_BY(mutex_);
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string heard_path_ ABSL_GUARDED_BY(mutex_);
  std::string stop_reason_ ABSL_GUARDED_BY(mutex_);
  bool refuses_ ABSL_GUARDED_BY(mutex_) = false;
  bool effective_ ABSL_GUARDED_BY(mutex_) = true;
  v1::ChangeSettingsRequest change_ ABSL_GUARDED_BY(mutex_);
};

// A job in the middle of training.
inline v1::GetStatusResponse TrainingResponse() {
  v1::GetStatusResponse response;
  response.set_job_name("fashion");
  response.set_state(v1::JOB_TRAINING);
  response.set_global_step(7);
  response.set_train_steps(100);
  response.mutable_training_time()->set_seconds(3);
  v1::MemberStatus& worker = *response.add_members();
  worker.set_task("worker 0");
  worker.set_state(v1::MEMBER_ALIVE);
  worker.mutable_progress()->set_accepted(7);
  return response;
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_DEPLOY_CLI_STATUS_FAKE_COORDINATOR_SERVICE_H_
