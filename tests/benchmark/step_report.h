#ifndef LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_
#define LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_

#include <string>
#include <vector>

#include "tests/benchmark/measured.h"

namespace lockstep::benchmark {

// The conditions that hold for all candidates of a run.
struct Circumstances {
  std::string congestion_control;         // of the loopback route
  std::string system_congestion_control;  // the system's default
};

// Returns one line of JSON without the line's end. `tcp` is the TCP program
// with the same bytes and workers, or null if it was not measured.
std::string ReportLine(const Measured& measured, const Measured* tcp,
                       const std::vector<std::string>& comparisons,
                       const Circumstances& circumstances);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_
