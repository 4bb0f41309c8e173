#ifndef LOCKSTEP_TESTS_BENCHMARK_MEASURED_H_
#define LOCKSTEP_TESTS_BENCHMARK_MEASURED_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmark/candidate.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {

// The measurements of one candidate: one record per round.
struct Measured {
  Candidate candidate;
  int64_t bytes = 0;  // of its model
  int64_t tensors = 0;
  std::vector<RunRecord> rounds;
};

//   kInvalidArgument  the model does not exist in this size
absl::StatusOr<Measured> NothingMeasured(const Candidate& candidate);

// The figures of a round.
enum class Metric {
  kStepMs,      // the median global step
  kMeanStepMs,  // the mean
  kCpuMs,       // CPU time of all processes for a global step
  kServerMiB,   // resident memory of a server but for shared memory
  kSharedMiB,   // shared memory beyond variables and slots, double
  kPeakMiB,     // peak memory, without the double buffers
  // Bytes that all processes send over loopback for a global step, for each
  // worker, in bytes of the model. Shared memory is no loopback.
  kModelsSent,
};

// One value per round.
std::vector<double> RoundValues(const Measured& measured, Metric metric);

// The median round; 0 without rounds.
double MedianRound(const Measured& measured, Metric metric);

// The ratios per round, of rounds that both candidates have.
std::vector<double> RoundRatios(const Measured& numerator,
                                const Measured& denominator, Metric metric);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_MEASURED_H_
