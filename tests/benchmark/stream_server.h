#ifndef LOCKSTEP_TESTS_BENCHMARK_STREAM_SERVER_H_
#define LOCKSTEP_TESTS_BENCHMARK_STREAM_SERVER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// Serves the workers of the cluster until each has closed its stream: the same
// computation as the naive server, with the callback API, in which no thread
// waits.
absl::Status RunStreamServer(const Cluster& cluster,
                             const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STREAM_SERVER_H_
