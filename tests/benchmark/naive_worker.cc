#include "tests/benchmark/naive_worker.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/naive.grpc.pb.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {
namespace {

class PlainClient {
 public:
  virtual ~PlainClient() = default;
  // Makes a step, and records the duration of its push if it has one.
  //
  //   kInternal  values of another size
  virtual absl::Status Step(const std::vector<float>& gradient,
                            std::vector<float>& values, StepSample& sample) = 0;
};

absl::Status Take(const v1::NaivePullResponse& response,
                  std::vector<float>& values) {
  if (response.values().size() != values.size() * sizeof(float)) {
    return absl::InternalError("the pull has another size than the model");
  }
  std::memcpy(values.data(), response.values().data(),
              response.values().size());
  return absl::OkStatus();
}

v1::NaivePushRequest PushOf(const std::vector<float>& gradient, int worker) {
  v1::NaivePushRequest request;
  request.set_worker(worker);
  request.set_gradient(gradient.data(), gradient.size() * sizeof(float));
  return request;
}

// NaiveClient makes a step with two calls.
class NaiveClient final : public PlainClient {
 public:
  NaiveClient(const std::string& server, int worker)
      : stub_(v1::NaiveParameterService::NewStub(MakeChannel(server))),
        worker_(worker) {}

  absl::Status Step(const std::vector<float>& gradient,
                    std::vector<float>& values, StepSample& sample) override {
    const int64_t began = NowNanoseconds();
    LOCKSTEP_RETURN_IF_ERROR(Push(gradient));
    sample.push = NowNanoseconds() - began;
    grpc::ClientContext context;
    v1::NaivePullResponse response;
    LOCKSTEP_RETURN_IF_ERROR(FromGrpcStatus(
        stub_->Pull(&context, v1::NaivePullRequest(), &response)));
    return Take(response, values);
  }

 private:
  absl::Status Push(const std::vector<float>& gradient) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::NaivePushResponse response;
    return FromGrpcStatus(
        stub_->Push(&context, PushOf(gradient, worker_), &response));
  }

  const std::unique_ptr<v1::NaiveParameterService::Stub> stub_;
  const int worker_;
};

// StreamClient exchanges one message each way; its thread processes gRPC's
// events itself, so no other thread has to wake it.
class StreamClient final : public PlainClient {
 public:
  StreamClient(const std::string& server, int worker)
      : stub_(v1::StreamParameterService::NewStub(MakeChannel(server))),
        worker_(worker) {
    context_.set_wait_for_ready(true);
    stream_ = stub_->Exchange(&context_);
  }
  ~StreamClient() override {
    stream_->WritesDone();
    stream_->Finish().IgnoreError();
  }

  absl::Status Step(const std::vector<float>& gradient,
                    std::vector<float>& values, StepSample&) override {
    v1::NaivePullResponse response;
    if (!stream_->Write(PushOf(gradient, worker_)) ||
        !stream_->Read(&response)) {
      return absl::UnavailableError("the server ended the stream");
    }
    return Take(response, values);
  }

 private:
  const std::unique_ptr<v1::StreamParameterService::Stub> stub_;
  const int worker_;
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::NaivePushRequest, v1::NaivePullResponse>>
      stream_;
};

std::unique_ptr<PlainClient> MakeClient(const std::string& role,
                                        const std::string& server, int worker) {
  if (role == "stream_worker") {
    return std::make_unique<StreamClient>(server, worker);
  }
  return std::make_unique<NaiveClient>(server, worker);
}

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
  const std::unique_ptr<PlainClient> client =
      MakeClient(options.role, server, worker);
  MomentumOracle oracle(cluster.num_workers());
  RunRecorder recorder(options.warmup, options.steps);
  for (int64_t step = 1; step <= AllSteps(options); ++step) {
    StepSample sample;
    const int64_t began = NowNanoseconds();
    LOCKSTEP_RETURN_IF_ERROR(client->Step(gradient, values, sample));
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
