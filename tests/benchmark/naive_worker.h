#ifndef LOCKSTEP_TESTS_BENCHMARK_NAIVE_WORKER_H_
#define LOCKSTEP_TESTS_BENCHMARK_NAIVE_WORKER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// Makes the requested steps with a naive server (one call that pushes, one that
// pulls) or, in the role "stream_worker", with RunStreamServer(). Worker 0
// writes the record.
//
//   kUnavailable  no server came up, or it ended
//   kInternal     the values are not the result of the gradients
absl::Status RunNaiveWorker(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_NAIVE_WORKER_H_
