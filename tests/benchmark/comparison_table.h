#ifndef LOCKSTEP_TESTS_BENCHMARK_COMPARISON_TABLE_H_
#define LOCKSTEP_TESTS_BENCHMARK_COMPARISON_TABLE_H_

#include <string>
#include <vector>

#include "tests/benchmark/comparison.h"
#include "tests/benchmark/measured.h"

namespace lockstep::benchmark {

// The figure of a row: the median of all rounds and their range.
struct RowResult {
  double median = 0;
  double lowest = 0;
  double highest = 0;
  int rounds = 0;  // 0: the row was not measured
};

const Measured* Find(const std::vector<Measured>& all,
                     const Candidate& candidate);

RowResult Evaluate(const Row& row, const std::vector<Measured>& all);

bool Met(const Goal& goal, double value);

// Returns lines of text: comparison, figure, range, goal, and whether it is
// met.
std::string ComparisonTable(const std::vector<Row>& rows,
                            const std::vector<Measured>& all);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_COMPARISON_TABLE_H_
