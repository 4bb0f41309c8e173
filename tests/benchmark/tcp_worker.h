#ifndef LOCKSTEP_TESTS_BENCHMARK_TCP_WORKER_H_
#define LOCKSTEP_TESTS_BENCHMARK_TCP_WORKER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// Runs a worker of TcpServer: in each step it sends its gradient and receives
// the new values at the same time. Writes the step times of worker 0.
//
//   kInternal     the values are not the result of the gradients
//   kUnavailable  a connection failed
absl::Status RunTcpWorker(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TCP_WORKER_H_
