#include "tests/benchmark/naive_server.h"

#include "common/base/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/plain_server.h"
#include "tests/benchmark/tcp_kernel.h"

namespace lockstep::benchmark {

NaiveParameterService::NaiveParameterService(int workers, int64_t bytes)
    : workers_(workers),
      values_(bytes / sizeof(float)),
      velocity_(values_.size()),
      gradients_(workers) {}

void NaiveParameterService::Apply() {
  MeanMomentum(gradients_, values_.size(), velocity_.data(), values_.data());
  gradients_.assign(workers_, nullptr);
  arrived_ = 0;
  ++step_;
  changed_.SignalAll();
}

grpc::Status NaiveParameterService::Push(grpc::ServerContext*,
                                         const v1::NaivePushRequest* request,
                                         v1::NaivePushResponse*) {
  MutexLock lock(mutex_);
  const auto worker = static_cast<size_t>(request->worker());
  if (worker >= workers_ ||
      request->gradient().size() != values_.size() * sizeof(float)) {
    return {grpc::StatusCode::INVALID_ARGUMENT,
            "no such worker, or a gradient of another size"};
  }
  gradients_[worker] =
      reinterpret_cast<const float*>(request->gradient().data());
  const int64_t step = step_;
  if (++arrived_ == workers_) Apply();
  while (step_ == step) changed_.Wait(mutex_);
  return grpc::Status::OK;
}

grpc::Status NaiveParameterService::Pull(grpc::ServerContext*,
                                         const v1::NaivePullRequest*,
                                         v1::NaivePullResponse* response) {
  response->set_values(values_.data(), values_.size() * sizeof(float));
  MutexLock lock(mutex_);
  ++pulls_;
  changed_.SignalAll();
  return grpc::Status::OK;
}

void NaiveParameterService::WaitUntilDone(int64_t steps) {
  MutexLock lock(mutex_);
  const int64_t pulls = steps * static_cast<int64_t>(workers_);
  while (step_ < steps || pulls_ < pulls) changed_.Wait(mutex_);
}

absl::Status RunNaiveServer(const Cluster& cluster,
                            const RoleOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  NaiveParameterService service(cluster.num_workers(), TotalBytes(variables));
  return ServeUntil([&] { service.WaitUntilDone(AllSteps(options)); }, cluster,
                    service);
}

}  // namespace lockstep::benchmark
