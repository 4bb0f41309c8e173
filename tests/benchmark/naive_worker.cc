#include "tests/benchmark/naive_worker.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/grpc_channel.h"
#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/naive.grpc.pb.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {
namespace {

// NaiveClient makes the two calls of a step.
class NaiveClient {
 public:
  NaiveClient(const std::string& server, int worker)
      : stub_(v1::NaiveParameterService::NewStub(MakeChannel(server))),
        worker_(worker) {}

  absl::Status Push(const std::vector<float>& gradient) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::NaivePushRequest request;
    v1::NaivePushResponse response;
    request.set_worker(worker_);
    request.set_gradient(gradient.data(), gradient.size() * sizeof(float));
    return FromGrpcStatus(stub_->Push(&context, request, &response));
  }

  //   kInternal  values of another size
  absl::Status Pull(std::vector<float>& values) {
    grpc::ClientContext context;
    v1::NaivePullResponse response;
    LOCKSTEP_RETURN_IF_ERROR(FromGrpcStatus(
        stub_->Pull(&context, v1::NaivePullRequest(), &response)));
    if (response.values().size() != values.size() * sizeof(float)) {
      return absl::InternalError("the pull has another size than the model");
    }
    std::memcpy(values.data(), response.values().data(),
                response.values().size());
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<v1::NaiveParameterService::Stub> stub_;
  const int worker_;
};

}  // namespace

absl::Status RunNaiveWorker(const Cluster& cluster,
                            const RoleOptions& options) {
  const int worker = cluster.self().index;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(std::string server,
                            cluster.Address({TaskType::kPs, 0}));
  std::vector<float> values(TotalBytes(variables) / sizeof(float));
  const std::vector<float> gradient(values.size(), GradientOf(worker));
  NaiveClient client(server, worker);
  MomentumOracle oracle(cluster.num_workers());
  RunRecorder recorder(options.warmup, options.steps);
  for (int64_t step = 1; step <= AllSteps(options); ++step) {
    StepSample sample;
    const int64_t began = NowNanoseconds();
    LOCKSTEP_RETURN_IF_ERROR(client.Push(gradient));
    sample.push = NowNanoseconds() - began;
    LOCKSTEP_RETURN_IF_ERROR(client.Pull(values));
    sample.total = NowNanoseconds() - began;
    sample.pull = sample.total - sample.push;
    oracle.AdvanceTo(step);
    LOCKSTEP_RETURN_IF_ERROR(oracle.Check(values.front()));
    LOCKSTEP_RETURN_IF_ERROR(oracle.Check(values.back()));
    if (worker == 0) recorder.Add(sample);
  }
  if (worker != 0) return absl::OkStatus();
  return WriteRecord(options.record, recorder.Finish());
}

}  // namespace lockstep::benchmark
