#include "tests/benchmark/tcp_worker.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/huge_buffer.h"
#include "tests/benchmark/step_samples.h"
#include "tests/benchmark/tcp_connection.h"

namespace lockstep::benchmark {
namespace {

constexpr size_t kChunk = size_t{1} << 20;  // bytes

// Sender sends the gradient, once for each Begin(), from its own thread. The
// caller itself sends a gradient of one chunk, which saves a wake-up.
class Sender {
 public:
  Sender(TcpConnection& connection, absl::Span<const std::byte> gradient)
      : connection_(connection), gradient_(gradient) {
    if (gradient_.size() > kChunk) thread_ = std::thread([this] { Loop(); });
  }
  ~Sender() {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(mutex_);
      stop_ = true;
      changed_.Signal();
    }
    thread_.join();
  }

  absl::Status Begin() {
    if (!thread_.joinable()) return SendAll();
    MutexLock lock(mutex_);
    ++steps_;
    changed_.Signal();
    return status_;
  }

 private:
  absl::Status SendAll() {
    for (size_t offset = 0; offset < gradient_.size(); offset += kChunk) {
      LOCKSTEP_RETURN_IF_ERROR(
          connection_.Send(gradient_.subspan(offset, kChunk)));
    }
    return absl::OkStatus();
  }

  bool WaitForStep() {
    MutexLock lock(mutex_);
    while (!stop_ && steps_ == 0) changed_.Wait(mutex_);
    if (steps_ > 0) --steps_;
    return !stop_;
  }

  void Loop() {
    while (WaitForStep()) {
      if (absl::Status status = SendAll(); !status.ok()) {
        MutexLock lock(mutex_);
        status_ = status;
        return;
      }
    }
  }

  TcpConnection& connection_;
  const absl::Span<const std::byte> gradient_;
  std::thread thread_;

  Mutex mutex_;
  CondVar changed_;
  int64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Receives the values of one step and checks both ends of every chunk.
absl::Status ReceiveValues(TcpConnection& connection,
                           absl::Span<std::byte> values,
                           const MomentumOracle& oracle) {
  for (size_t offset = 0; offset < values.size(); offset += kChunk) {
    const absl::Span<std::byte> chunk = values.subspan(offset, kChunk);
    LOCKSTEP_RETURN_IF_ERROR(connection.Receive(chunk));
    float ends[2];
    std::memcpy(&ends[0], chunk.data(), sizeof(float));
    std::memcpy(&ends[1], chunk.data() + chunk.size() - sizeof(float),
                sizeof(float));
    LOCKSTEP_RETURN_IF_ERROR(oracle.Check(ends[0]));
    LOCKSTEP_RETURN_IF_ERROR(oracle.Check(ends[1]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTcpWorker(const Cluster& cluster, const RoleOptions& options) {
  const int worker = cluster.self().index;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  const size_t bytes = TotalBytes(variables);
  const HugeBuffer values(bytes);
  const HugeBuffer gradient(bytes);
  std::fill_n(reinterpret_cast<float*>(gradient.bytes().data()),
              bytes / sizeof(float), GradientOf(worker));
  LOCKSTEP_ASSIGN_OR_RETURN(std::string server,
                            cluster.Address({TaskType::kPs, 0}));
  LOCKSTEP_ASSIGN_OR_RETURN(TcpConnection connection,
                            TcpConnection::Connect(server));
  const auto hello = static_cast<std::byte>(worker);
  LOCKSTEP_RETURN_IF_ERROR(connection.Send({&hello, 1}));
  std::optional<TcpConnection> back;  // for what the server sends
  if (options.encrypt) {
    LOCKSTEP_ASSIGN_OR_RETURN(back, TcpConnection::Connect(server));
    LOCKSTEP_RETURN_IF_ERROR(back->Send({&hello, 1}));
    LOCKSTEP_RETURN_IF_ERROR(connection.Encrypt(/*is_server=*/false));
    LOCKSTEP_RETURN_IF_ERROR(back->Encrypt(/*is_server=*/false));
  }
  TcpConnection& from_server = back.has_value() ? *back : connection;
  Sender sender(connection, gradient.bytes().first(bytes));
  MomentumOracle oracle(cluster.num_workers());
  RunRecorder recorder(options.warmup, options.steps);
  for (int64_t step = 1; step <= AllSteps(options); ++step) {
    const int64_t began = NowNanoseconds();
    oracle.AdvanceTo(step);
    LOCKSTEP_RETURN_IF_ERROR(sender.Begin());
    LOCKSTEP_RETURN_IF_ERROR(
        ReceiveValues(from_server, values.bytes().first(bytes), oracle));
    StepSample sample;
    sample.total = NowNanoseconds() - began;
    if (worker == 0) recorder.Add(sample);
  }
  if (worker != 0) return absl::OkStatus();
  return WriteRecord(options.record, recorder.Finish());
}

}  // namespace lockstep::benchmark
