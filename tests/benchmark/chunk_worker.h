#ifndef LOCKSTEP_TESTS_BENCHMARK_CHUNK_WORKER_H_
#define LOCKSTEP_TESTS_BENCHMARK_CHUNK_WORKER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// A worker of the chunk server: four calls in flight over two connections; new
// values are copied from gRPC's memory into one buffer.
absl::Status RunChunkWorker(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CHUNK_WORKER_H_
