#ifndef LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_
#define LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {

// What is measured: a kind of cluster with a model.
struct Candidate {
  std::string system;  // "lockstep", "lockstep_bfloat16" or "tcp"
  std::string model;   // as MakeBenchmarkVariables() has it
};

// How every candidate of a run is measured.
struct RunSettings {
  int workers = 2;              // 1 to 64
  int servers = 1;              // of lockstep; tcp has one
  int64_t bytes = 0;            // of the models that have a size
  int64_t warmup = 0;           // steps before the measured ones
  int64_t steps = 0;            // measured steps of a round
  bool huge_page_heap = false;  // glibc's heap in huge pages, in all processes
};

// Starts the candidate's processes, runs them to their end and returns worker
// 0's times. Nothing of them is left behind.
//
//   kAborted, kDeadlineExceeded  a process failed or hangs; has its last words
//   others                       as ProcessCluster
absl::StatusOr<std::vector<StepSample>> RunOnce(const Candidate& candidate,
                                                const RunSettings& settings);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_
