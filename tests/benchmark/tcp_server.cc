#include "tests/benchmark/tcp_server.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/tcp_kernel.h"

namespace lockstep::benchmark {
namespace {

constexpr int64_t kPiece = int64_t{512} << 10;  // bytes
constexpr int64_t kWindow = 8;                  // pieces held per worker
constexpr int64_t kSent = 2;                    // pieces per send

std::vector<HugeBuffer> MakeRings(size_t workers) {
  std::vector<HugeBuffer> rings;
  for (size_t i = 0; i < workers; ++i) rings.emplace_back(kWindow * kPiece);
  return rings;
}

}  // namespace

TcpServer::TcpServer(std::vector<TcpConnection> connections,
                     std::vector<TcpConnection> back, int64_t bytes,
                     int64_t steps, bool two_phase)
    : connections_(std::move(connections)),
      back_(std::move(back)),
      bytes_(bytes),
      num_pieces_((bytes + kPiece - 1) / kPiece),
      two_phase_(two_phase),
      end_(num_pieces_ * steps),
      values_(bytes),
      velocities_(bytes),
      received_(MakeRings(connections_.size())),
      arrived_(kWindow, 0),
      done_(kWindow, false) {}

absl::Span<std::byte> TcpServer::Values(int64_t index) const {
  const int64_t offset = index % num_pieces_ * kPiece;
  return values_.bytes().subspan(offset, std::min(kPiece, bytes_ - offset));
}

absl::Span<std::byte> TcpServer::ValuesToSend(int64_t first,
                                              int64_t& count) const {
  const int64_t place = first % num_pieces_;
  count = std::min(kSent, num_pieces_ - place);
  const int64_t offset = place * kPiece;
  return values_.bytes().subspan(offset,
                                 std::min(count * kPiece, bytes_ - offset));
}

absl::Span<std::byte> TcpServer::Received(int worker, int64_t index) const {
  return received_[worker].bytes().subspan(index % kWindow * kPiece,
                                           Values(index).size());
}

void TcpServer::Fail(const absl::Status& status) {
  MutexLock lock(mutex_);
  failure_.Update(status);
  changed_.SignalAll();
}

bool TcpServer::WaitUntilUpdated(int64_t index) {
  MutexLock lock(mutex_);
  while (failure_.ok() && updated_ <= index) changed_.Wait(mutex_);
  return failure_.ok();
}

bool TcpServer::Arrived(int64_t index) {
  MutexLock lock(mutex_);
  size_t& arrived = arrived_[index % kWindow];
  if (++arrived < connections_.size()) return false;
  arrived = 0;
  return true;
}

void TcpServer::Update(int64_t index) {
  std::vector<const float*> gradients;
  for (size_t w = 0; w < connections_.size(); ++w) {
    gradients.push_back(reinterpret_cast<const float*>(
        Received(static_cast<int>(w), index).data()));
  }
  const absl::Span<std::byte> values = Values(index);
  std::byte* velocity =
      velocities_.bytes().data() + (values.data() - values_.bytes().data());
  MeanMomentum(gradients, values.size() / sizeof(float),
               reinterpret_cast<float*>(velocity),
               reinterpret_cast<float*>(values.data()));
}

void TcpServer::Updated(int64_t index) {
  MutexLock lock(mutex_);
  done_[index % kWindow] = true;
  while (done_[updated_ % kWindow]) done_[updated_++ % kWindow] = false;
  changed_.SignalAll();
}

absl::Status TcpServer::SendToAll(int64_t index) {
  for (TcpConnection& connection : Back()) {
    LOCKSTEP_RETURN_IF_ERROR(connection.Send(Values(index)));
  }
  return absl::OkStatus();
}

absl::Status TcpServer::Receive(int worker) {
  for (int64_t index = 0; index < end_; ++index) {
    // A place in the ring is free when its previous piece is updated.
    if (!WaitUntilUpdated(index - kWindow)) break;
    LOCKSTEP_RETURN_IF_ERROR(
        connections_[worker].Receive(Received(worker, index)));
    if (!Arrived(index)) continue;
    Update(index);
    Updated(index);
    if (num_pieces_ == 1) LOCKSTEP_RETURN_IF_ERROR(SendToAll(index));
  }
  return absl::OkStatus();
}

absl::Status TcpServer::Send(int worker) {
  for (int64_t index = 0, count = 0; index < end_; index += count) {
    const absl::Span<std::byte> values = ValuesToSend(index, count);
    const int64_t step_end = (index / num_pieces_ + 1) * num_pieces_;
    if (!WaitUntilUpdated((two_phase_ ? step_end : index + count) - 1)) break;
    LOCKSTEP_RETURN_IF_ERROR(Back()[worker].Send(values));
  }
  return absl::OkStatus();
}

absl::Status TcpServer::Run() {
  std::vector<std::thread> threads;
  const auto start = [&](std::function<absl::Status()> loop) {
    threads.emplace_back([this, loop = std::move(loop)] {
      if (absl::Status status = loop(); !status.ok()) Fail(status);
    });
  };
  for (size_t w = 0; w < connections_.size(); ++w) {
    const int worker = static_cast<int>(w);
    start([this, worker] { return Receive(worker); });
    if (num_pieces_ > 1) start([this, worker] { return Send(worker); });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(mutex_);
  return failure_;
}

absl::Status RunTcpServer(const Cluster& cluster, const RoleOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(std::string address,
                            cluster.Address(cluster.self()));
  LOCKSTEP_ASSIGN_OR_RETURN(TcpListener listener, TcpListener::Listen(address));
  // By worker: one connection, or one from it and a second one back.
  std::vector<std::vector<TcpConnection>> all(cluster.num_workers());
  const size_t of_each = options.encrypt ? 2 : 1;
  for (size_t i = 0; i < of_each * all.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(TcpConnection connection, listener.Accept());
    std::byte worker;  // the hello message is the worker's index
    LOCKSTEP_RETURN_IF_ERROR(connection.Receive({&worker, 1}));
    all.at(static_cast<size_t>(worker)).push_back(std::move(connection));
  }
  std::vector<TcpConnection> connections;
  std::vector<TcpConnection> back;
  for (std::vector<TcpConnection>& own : all) {
    if (options.encrypt) {
      LOCKSTEP_RETURN_IF_ERROR(own.at(0).Encrypt(/*is_server=*/true));
      LOCKSTEP_RETURN_IF_ERROR(own.at(1).Encrypt(/*is_server=*/true));
      back.push_back(std::move(own[1]));
    }
    connections.push_back(std::move(own.at(0)));
  }
  return TcpServer(std::move(connections), std::move(back),
                   TotalBytes(variables), AllSteps(options), options.two_phase)
      .Run();
}

}  // namespace lockstep::benchmark
