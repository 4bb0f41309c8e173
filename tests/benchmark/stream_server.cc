#include "tests/benchmark/stream_server.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/naive.grpc.pb.h"
#include "tests/benchmark/plain_server.h"
#include "tests/benchmark/tcp_kernel.h"

namespace lockstep::benchmark {
namespace {

class StreamParameterService;

// The open stream of one worker.
class ExchangeStream final
    : public grpc::ServerBidiReactor<v1::NaivePushRequest,
                                     v1::NaivePullResponse> {
 public:
  explicit ExchangeStream(StreamParameterService& service) : service_(service) {
    StartRead(&request_);
  }

  const v1::NaivePushRequest& request() const { return request_; }
  // Sends the values of a step, after its request has been used.
  void Answer(const std::vector<float>& values) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override;

 private:
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StreamParameterService& service_;
  v1::NaivePushRequest request_;
  v1::NaivePullResponse response_;

  Mutex mutex_;
  // The peer may receive the answer and send again before this callback runs.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::string next_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
};

class StreamParameterService final
    : public v1::StreamParameterService::CallbackService {
 public:
  StreamParameterService(size_t workers, int64_t bytes)
      : workers_(workers),
        values_(bytes / sizeof(float)),
        velocity_(values_.size()),
        arrived_(workers) {}

  grpc::ServerBidiReactor<v1::NaivePushRequest, v1::NaivePullResponse>*
  Exchange(grpc::CallbackServerContext*) override {
    return new ExchangeStream(*this);
  }

  // False if its request is not one of a worker of this cluster.
  bool Arrived(ExchangeStream& stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    const auto worker = static_cast<size_t>(stream.request().worker());
    if (worker >= workers_ ||
        stream.request().gradient().size() != values_.size() * sizeof(float)) {
      return false;
    }
    arrived_[worker] = &stream;
    if (++count_ == workers_) Apply();
    return true;
  }

  void Ended() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    ++ended_;
    changed_.SignalAll();
  }

  void WaitUntilDone() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    while (ended_ < workers_) changed_.Wait(mutex_);
  }

 private:
  void Apply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<const float*> gradients;
    for (const ExchangeStream* stream : arrived_) {
      gradients.push_back(
          reinterpret_cast<const float*>(stream->request().gradient().data()));
    }
    MeanMomentum(gradients, values_.size(), velocity_.data(), values_.data());
    count_ = 0;
    for (ExchangeStream* stream : arrived_) stream->Answer(values_);
  }

  const size_t workers_;

  Mutex mutex_;  // locked before those of the streams
  CondVar changed_;
  std::vector<float> values_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> velocity_ ABSL_GUARDED_BY(mutex_);
  std::vector<ExchangeStream*> arrived_ ABSL_GUARDED_BY(mutex_);  // by worker
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
};

void ExchangeStream::Answer(const std::vector<float>& values) {
  MutexLock lock(mutex_);
  next_.assign(reinterpret_cast<const char*>(values.data()),
               values.size() * sizeof(float));
  WriteNext();
  StartRead(&request_);
}

void ExchangeStream::WriteNext() {
  if (writing_ || next_.empty()) return;
  response_.set_values(std::exchange(next_, ""));
  writing_ = true;
  StartWrite(&response_);
}

void ExchangeStream::OnReadDone(bool ok) {
  if (ok && service_.Arrived(*this)) return;
  MutexLock lock(mutex_);
  end_ = grpc::Status::OK;
  if (ok) {
    end_ = {grpc::StatusCode::INVALID_ARGUMENT,
            "no such worker, or a gradient of another size"};
  }
  if (!writing_) Finish(*end_);
}

void ExchangeStream::OnWriteDone(bool /*ok*/) {
  MutexLock lock(mutex_);
  writing_ = false;
  if (end_.has_value()) return Finish(*end_);
  WriteNext();
}

void ExchangeStream::OnDone() {
  service_.Ended();
  delete this;
}

}  // namespace

absl::Status RunStreamServer(const Cluster& cluster,
                             const RoleOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  StreamParameterService service(cluster.num_workers(), TotalBytes(variables));
  return ServeUntil([&] { service.WaitUntilDone(); }, cluster, service);
}

}  // namespace lockstep::benchmark
