#ifndef LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_SIMULATION_H_
#define LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_SIMULATION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/benchmark/straggler_cases.h"

// The cases of the straggler benchmark in the cluster of `lockstep simulate`.
namespace lockstep::benchmark {

// The time of real processes besides computing, as `lockstep simulate` has it.
struct SimulatedCosts {
  absl::Duration overhead;       // of a step
  absl::Duration push_overhead;  // of a pass or micro-batch
};

// Returns the time that MeasuredMs() measures. Nullopt: a case that is not
// simulated, of compatible mode, with a worker that is never started, or with
// passes that take no time. A case in which the chief chooses the micro-batches
// of a push has one in each.
//
// Errors: those of VirtualCluster::Run().
absl::StatusOr<std::optional<double>> SimulatedMs(
    const StragglerCase& straggler, const SimulatedCosts& costs);

// Lines of text: measured and simulated times, and how far these are off. All
// lists have one element for each case.
std::string AgreementTable(const std::vector<StragglerCase>& cases,
                           const std::vector<Measured>& measured,
                           const std::vector<std::optional<double>>& simulated);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_SIMULATION_H_
