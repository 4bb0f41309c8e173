#ifndef LOCKSTEP_TESTS_BENCHMARK_OVERLAP_WORKER_H_
#define LOCKSTEP_TESTS_BENCHMARK_OVERLAP_WORKER_H_

#include <string>

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/overlap_schedule.h"

namespace lockstep::benchmark {

// Runs a worker of a real job with Lockstep's own training loop and parameter
// client, whose model is a LayeredSource. Worker 0 writes the report to
// `report`. Returns when the job is done.
//
//   kUnavailable  `report` cannot be written
//   others        as LayeredSource, ChiefClient and TrainingLoop
absl::Status RunOverlapWorker(const Cluster& cluster,
                              const OverlapOptions& options,
                              const std::string& report);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_OVERLAP_WORKER_H_
