#ifndef LOCKSTEP_TESTS_BENCHMARK_CHUNK_SERVER_H_
#define LOCKSTEP_TESTS_BENCHMARK_CHUNK_SERVER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// Serves the workers of the cluster until each has made all steps. Chunks stay
// in gRPC's receive buffers until those of all workers are there; Lockstep's
// own kernel updates them, from one buffer to the other, and the answer
// references the new values. Checks nothing and tolerates no failure.
absl::Status RunChunkServer(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CHUNK_SERVER_H_
