#ifndef LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_
#define LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_

#include <string>
#include <vector>

#include "tests/benchmark/measured.h"

namespace lockstep::benchmark {

// What holds for all candidates of a run.
struct Circumstances {
  std::string congestion_control;         // of the loopback route
  std::string system_congestion_control;  // the system's default
};

// One line of JSON without the line's end. `tcp` is the TCP program of as many
// bytes and workers, or null where it was not measured.
std::string ReportLine(const Measured& measured, const Measured* tcp,
                       const std::vector<std::string>& comparisons,
                       const Circumstances& circumstances);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STEP_REPORT_H_
