#ifndef LOCKSTEP_TESTS_BENCHMARK_GLOO_WORKER_H_
#define LOCKSTEP_TESTS_BENCHMARK_GLOO_WORKER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// True if this build has gloo, the library of collectives that PyTorch has on
// CPUs. It is a peer to measure against, and part of no program of Lockstep.
bool HasGloo();

// Runs a worker without any server: in each step gloo's all-reduce sums the
// gradients, and the worker updates values of its own. Writes the step times of
// worker 0.
//
//   kInternal       the values are not the result of the gradients
//   kUnavailable    a peer is not there, or has gone
//   kUnimplemented  this build has no gloo
absl::Status RunGlooWorker(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_GLOO_WORKER_H_
