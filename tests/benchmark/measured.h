#ifndef LOCKSTEP_TESTS_BENCHMARK_MEASURED_H_
#define LOCKSTEP_TESTS_BENCHMARK_MEASURED_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmark/candidate.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {

// What was measured of one candidate: a record of each round.
struct Measured {
  Candidate candidate;
  int64_t bytes = 0;  // of its model
  int64_t tensors = 0;
  std::vector<RunRecord> rounds;
};

//   kInvalidArgument  a model that does not exist in this size
absl::StatusOr<Measured> NothingMeasured(const Candidate& candidate);

// What can be told of a round.
enum class Metric {
  kStepMs,      // the median global step
  kMeanStepMs,  // the mean
  kCpuMs,       // CPU time of all processes for a global step
  kServerMiB,   // resident memory of a server but for shared memory
  kSharedMiB,   // shared memory beyond variables and slots, held twice
  kPeakMiB,     // the most memory there ever was, but for what is held twice
};

// By round.
std::vector<double> RoundValues(const Measured& measured, Metric metric);

// The median round; 0 without rounds.
double MedianRound(const Measured& measured, Metric metric);

// By round: one over the other. Only rounds that both have.
std::vector<double> RoundRatios(const Measured& numerator,
                                const Measured& denominator, Metric metric);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_MEASURED_H_
