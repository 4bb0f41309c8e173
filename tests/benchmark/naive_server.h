#ifndef LOCKSTEP_TESTS_BENCHMARK_NAIVE_SERVER_H_
#define LOCKSTEP_TESTS_BENCHMARK_NAIVE_SERVER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/naive.grpc.pb.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// NaiveParameterService uses the synchronous API in the obvious way: each push
// waits in its own thread until the last one has applied the step.
//
// Threads: safe to share; one push of each worker at a time.
class NaiveParameterService final : public v1::NaiveParameterService::Service {
 public:
  NaiveParameterService(int workers, int64_t bytes);

  //   INVALID_ARGUMENT  no such worker, or a gradient of another size
  grpc::Status Push(grpc::ServerContext* context,
                    const v1::NaivePushRequest* request,
                    v1::NaivePushResponse* response) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  grpc::Status Pull(grpc::ServerContext* context,
                    const v1::NaivePullRequest* request,
                    v1::NaivePullResponse* response) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until `steps` steps are made and every worker has pulled the last.
  void WaitUntilDone(int64_t steps) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Apply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t workers_;
  // Written only while all workers wait in Push(), so pulls need no lock.
  std::vector<float> values_;
  std::vector<float> velocity_;

  Mutex mutex_;
  CondVar changed_;
  // By worker, pointers into the waiting requests; null: not arrived.
  std::vector<const float*> gradients_ ABSL_GUARDED_BY(mutex_);
  size_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pulls_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Serves the workers of the cluster until all steps are made.
absl::Status RunNaiveServer(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_NAIVE_SERVER_H_
