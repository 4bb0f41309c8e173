#ifndef LOCKSTEP_TESTS_BENCHMARK_TCP_SERVER_H_
#define LOCKSTEP_TESTS_BENCHMARK_TCP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/huge_buffer.h"
#include "tests/benchmark/role_options.h"
#include "tests/benchmark/tcp_connection.h"

namespace lockstep::benchmark {

// TcpServer is a minimal parameter server: for a fixed number of steps it
// receives a gradient from every worker, sums in worker order, averages,
// applies momentum and sends the new values to all. It checks nothing and
// tolerates no failure. With two phases it sends nothing before it has received
// all of a step; without, it sends and receives at the same time.
//
// A piece is so small that the last worker's data is still in the cache when it
// is summed; the other workers' pieces are held until then.
//
// Threads: one per worker that receives and one that sends; the one that
//          receives the last gradient of a piece updates it. The only piece of
//          a small model is sent by that thread too, which saves a wake-up.
class TcpServer {
 public:
  // `connections` is indexed by worker, and so is `back`, for what is sent;
  // empty: the same connections.
  TcpServer(std::vector<TcpConnection> connections,
            std::vector<TcpConnection> back, int64_t bytes, int64_t steps,
            bool two_phase);

  absl::Status Run() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Receive(int worker) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Send(int worker) ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the gradient of worker `worker` was the last one.
  bool Arrived(int64_t index) ABSL_LOCKS_EXCLUDED(mutex_);
  void Update(int64_t index);
  void Updated(int64_t index) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SendToAll(int64_t index);
  bool WaitUntilUpdated(int64_t index) ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // `index` counts pieces over all steps: `index` % num_pieces_ is the piece.
  absl::Span<std::byte> Values(int64_t index) const;
  // Returns the pieces from `first` on for one send; sets `count`.
  absl::Span<std::byte> ValuesToSend(int64_t first, int64_t& count) const;
  absl::Span<std::byte> Received(int worker, int64_t index) const;

  std::vector<TcpConnection>& Back() {
    return back_.empty() ? connections_ : back_;
  }

  std::vector<TcpConnection> connections_;
  std::vector<TcpConnection> back_;
  const int64_t bytes_;
  const int64_t num_pieces_;
  const bool two_phase_;
  const int64_t end_;  // number of pieces in all steps
  const HugeBuffer values_;
  const HugeBuffer velocities_;
  const std::vector<HugeBuffer> received_;  // by worker; a ring of pieces

  Mutex mutex_;
  CondVar changed_;
  std::vector<size_t> arrived_ ABSL_GUARDED_BY(mutex_);  // by place in the ring
  std::vector<bool> done_ ABSL_GUARDED_BY(mutex_);       // likewise
  int64_t updated_ ABSL_GUARDED_BY(mutex_) = 0;  // all lower pieces are updated
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

// Serves the workers of the cluster.
absl::Status RunTcpServer(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TCP_SERVER_H_
