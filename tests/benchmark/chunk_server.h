#ifndef LOCKSTEP_TESTS_BENCHMARK_CHUNK_SERVER_H_
#define LOCKSTEP_TESTS_BENCHMARK_CHUNK_SERVER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// Serves the workers of the cluster until each has all steps: chunks are held
// as gRPC received them until those of all workers are there, updated by
// Lockstep's own kernel, from one buffer to the other, and answered with a
// reference to the new values. Checks and survives nothing.
absl::Status RunChunkServer(const Cluster& cluster, const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CHUNK_SERVER_H_
