#ifndef LOCKSTEP_TESTS_BENCHMARK_COMPARISON_H_
#define LOCKSTEP_TESTS_BENCHMARK_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmark/candidate.h"
#include "tests/benchmark/measured.h"

namespace lockstep::benchmark {

// The target of a figure.
struct Goal {
  double limit = 0;
  bool at_least = false;  // else at most
};

// One row of the final table: a figure of one candidate, or its ratio to that
// of another candidate.
struct Row {
  std::string comparison;
  std::string what;
  Metric metric = Metric::kStepMs;
  Candidate numerator;
  std::optional<Candidate> denominator;  // nothing: the figure itself
  std::optional<Goal> goal;              // nothing: for information
};

// The options common to the candidates of all comparisons.
struct ComparisonOptions {
  Candidate base;            // lockstep, dense
  int64_t scalar_steps = 0;  // of the model scalar
};

// A set of rows that --compare can name.
struct Comparison {
  std::string name;
  std::string summary;
  bool by_default = true;
};
const std::vector<Comparison>& AllComparisons();

// The rows of a comparison. Empty if it needs a job field that this build does
// not have.
//
//   kInvalidArgument  no such comparison
absl::StatusOr<std::vector<Row>> MakeRows(const std::string& name,
                                          const ComparisonOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_COMPARISON_H_
