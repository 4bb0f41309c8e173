#ifndef LOCKSTEP_TESTS_TESTING_LOCAL_ROLES_H_
#define LOCKSTEP_TESTS_TESTING_LOCAL_ROLES_H_

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/chief.h"
#include "common/base/clock.h"
#include "common/rpc/server.h"
#include "server/ps_server.h"
#include "tests/testing/local_job.h"
#include "worker/worker.h"

namespace lockstep::testing {

// RunningRole runs `role->Run()` in a thread and keeps how it ended.
template <class Role>
class RunningRole {
 public:
  explicit RunningRole(absl::StatusOr<std::unique_ptr<Role>> role) {
    if (!role.ok()) {
      end_ = role.status();
      return;
    }
    role_ = *std::move(role);
    thread_ = std::thread([this] { end_ = role_->Run(); });
  }
  RunningRole(const RunningRole&) = delete;
  RunningRole& operator=(const RunningRole&) = delete;
  ~RunningRole() { Wait().IgnoreError(); }

  // Must not be called where making the role has failed.
  Role& role() { return *role_; }

  // Waits for the end of Run() and returns it; of a role that could not be
  // made, why.
  absl::Status Wait() {
    if (thread_.joinable()) thread_.join();
    return end_;
  }

 private:
  std::unique_ptr<Role> role_;
  absl::Status end_;
  std::thread thread_;
};

// The chief of a job, and the server that it is reached by.
class LocalChief {
 public:
  explicit LocalChief(LocalJob& job)
      : chief_(chief::Chief::Make(job.ClusterOf("chief", 0), job.job(), 1,
                                  Clock::Real())) {
    if (!chief_.ok()) return;
    server_ = GrpcServer::Start(job.Address("chief", 0), (*chief_)->services());
    thread_ = std::thread([this] { end_ = (*chief_)->Run(); });
  }
  ~LocalChief() { Wait().IgnoreError(); }

  // Must not be called where making the chief has failed.
  chief::Chief& chief() { return **chief_; }

  absl::Status Wait() {
    if (thread_.joinable()) thread_.join();
    if (!chief_.ok()) return chief_.status();
    return server_.ok() ? end_ : server_.status();
  }

 private:
  absl::StatusOr<std::unique_ptr<chief::Chief>> chief_;
  absl::StatusOr<std::unique_ptr<GrpcServer>> server_;
  absl::Status end_;
  std::thread thread_;
};

using LocalServer = RunningRole<server::PsServer>;
using LocalWorker = RunningRole<worker::Worker>;

inline std::unique_ptr<LocalServer> StartServer(const LocalJob& job,
                                                int index = 0) {
  server::PsServer::Options options;
  options.state_dir = job.state_directory();
  return std::make_unique<LocalServer>(server::PsServer::Start(
      job.ClusterOf("ps", index), options, Clock::Real()));
}

inline std::unique_ptr<LocalWorker> StartWorker(const LocalJob& job,
                                                int index = 0) {
  return std::make_unique<LocalWorker>(worker::Worker::Make(
      job.ClusterOf("worker", index), {.device = "cpu"}, Clock::Real()));
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_LOCAL_ROLES_H_
