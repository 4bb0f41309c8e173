#ifndef LOCKSTEP_TESTS_BENCHMARK_STEP_SAMPLES_H_
#define LOCKSTEP_TESTS_BENCHMARK_STEP_SAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep::benchmark {

// StepSample is one global step as worker 0 saw it.
//
// Units: nanoseconds.
struct StepSample {
  int64_t total = 0;  // from one token to the next
  // What of it passed in each call; 0 where there is no such call.
  int64_t pull = 0;
  int64_t announce = 0;
  int64_t push = 0;
  int64_t token = 0;
};

// Time since some moment, of a clock that never jumps.
int64_t NowNanoseconds();

//   kUnavailable  `path` cannot be written or read, or is none of ours
absl::Status WriteSamples(const std::string& path,
                          const std::vector<StepSample>& samples);
absl::StatusOr<std::vector<StepSample>> ReadSamples(const std::string& path);

// The mean of the middle two if the count is even; 0 of nothing.
double Median(std::vector<double> values);

// Milliseconds: the median of one field.
double MedianMs(const std::vector<StepSample>& samples,
                int64_t StepSample::*field);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STEP_SAMPLES_H_
