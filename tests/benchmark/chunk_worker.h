#ifndef LOCKSTEP_TESTS_BENCHMARK_CHUNK_WORKER_H_
#define LOCKSTEP_TESTS_BENCHMARK_CHUNK_WORKER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// Worker of the chunk server: four calls under way over two connections, new
// values copied out of gRPC's memory into one buffer.
absl::Status RunChunkWorker(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CHUNK_WORKER_H_
