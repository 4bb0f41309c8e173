#ifndef LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_
#define LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_

#include <string>
#include <vector>

#include "tests/benchmark/candidate.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {

// What was measured of one candidate.
struct Measured {
  Candidate candidate;
  int64_t bytes = 0;  // of its model
  int64_t tensors = 0;
  std::vector<std::vector<StepSample>> rounds;
};

// What holds for all candidates of a run.
struct Circumstances {
  std::string congestion_control;         // of the loopback route
  std::string system_congestion_control;  // the system's default
};

// The median step of each round, milliseconds.
std::vector<double> RoundMedians(const Measured& measured);

// The median round; 0 without rounds.
double StepMs(const Measured& measured);

// One line of JSON without the line's end. `tcp` is the TCP program of the
// same number of bytes, or null where it was not measured.
std::string ReportLine(const Measured& measured, const Measured* tcp,
                       const RunSettings& settings,
                       const Circumstances& circumstances);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_
