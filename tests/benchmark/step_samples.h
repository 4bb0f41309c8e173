#ifndef LOCKSTEP_TESTS_BENCHMARK_STEP_SAMPLES_H_
#define LOCKSTEP_TESTS_BENCHMARK_STEP_SAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/benchmark/resource_usage.h"

namespace lockstep::benchmark {

// StepSample is one pass of worker 0, which in most jobs is one global step.
//
// Units: nanoseconds.
struct StepSample {
  int64_t total = 0;  // from one token to the next
  // Parts of `total` spent in each call; 0 if there is no such call.
  int64_t pull = 0;
  int64_t announce = 0;
  int64_t push = 0;
  int64_t token = 0;
  int64_t steps = 1;  // global steps made in this pass; > 0
};

// RunRecord holds worker 0's measurements of a candidate's run.
struct RunRecord {
  std::vector<StepSample> samples;
  double cpu_seconds = 0;  // of all processes, over all samples
  ProcessMemory server;    // at the end
  int64_t sent_bytes = 0;  // over loopback, by all processes, over all samples
  // Gradients of a step, mean of the measured steps, where the job chooses them
  // (AUTO); else 0. Not in the file.
  double gradients = 0;
};

// RunRecorder records a run: it skips the warm-up steps and stops after the
// requested steps.
class RunRecorder {
 public:
  // Units: global steps.
  RunRecorder(int64_t warmup, int64_t steps);

  void Add(const StepSample& sample);

  // If there were too few steps, resource usage counts up to now.
  RunRecord Finish();

 private:
  int64_t warmup_left_;
  int64_t steps_left_;
  ResourceUsage before_;  // at the first sample
  bool finished_ = false;
  RunRecord record_;
};

// Returns the time since a fixed moment, of a clock that never jumps.
int64_t NowNanoseconds();

//   kUnavailable  `path` cannot be written or read, or is no record
absl::Status WriteRecord(const std::string& path, const RunRecord& record);
absl::StatusOr<RunRecord> ReadRecord(const std::string& path);

// Returns the number of global steps of all samples.
int64_t CountSteps(const std::vector<StepSample>& samples);

// Returns the mean of the middle two if the count is even; 0 if there are none.
double Median(std::vector<double> values);

// Milliseconds for a global step: median and mean of one field.
double MedianMs(const std::vector<StepSample>& samples,
                int64_t StepSample::*field);
double MeanMs(const std::vector<StepSample>& samples,
              int64_t StepSample::*field);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STEP_SAMPLES_H_
