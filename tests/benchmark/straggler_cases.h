#ifndef LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_CASES_H_
#define LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/benchmark/candidate.h"
#include "tests/benchmark/measured.h"

namespace lockstep::benchmark {

// One case of slow or missing workers, and a figure to compare it with.
struct StragglerCase {
  std::string what;
  Candidate candidate;
  // The result of TensorFlow's SyncReplicasOptimizer, without initial tokens,
  // and with its default number. Where work is shared, the least time that the
  // sum of the workers' speeds allows, as a ratio to `unit_ms`. Empty: none.
  std::string reference;
  // Upper bound: milliseconds for the first case, else the ratio to it; 0:
  // none.
  double goal = 0;
  // Not 0: ratios, and the goal of every case, are to so many milliseconds.
  double unit_ms = 0;
  // Ratios are of the times of as many gradients, not of steps.
  bool per_gradient = false;
  // Where it is not empty, the least of the cases with these indices is what
  // this one is compared with, in place of the first one.
  std::vector<size_t> best_of = {};
};

struct StragglerOptions {
  int64_t compute_ms = 50;  // time to compute a gradient
  int64_t steps = 150;
  int64_t warmup = 10;
  int64_t bytes = 400 << 10;
  bool compatible = false;
  bool shared = false;
  int push = 0;  // shared work: micro-batches of a push; 0: the chief chooses
  bool tuned = false;
  int initial_tokens = -1;  // -1: the default
};

// Cases with four workers, then with five of which four are needed. Where
// work is shared: eight shares a step, each of two micro-batches, on four
// workers or more. Where the chief chooses the number of gradients: four
// workers, and the time that four gradients take.
std::vector<StragglerCase> StragglerCases(const StragglerOptions& options);

// Milliseconds: the median over the rounds of the mean time of a step, or of
// four gradients where the case compares those.
double MeasuredMs(const StragglerCase& straggler, const Measured& measured);

// Lines of text. `measured` has one element for each case.
std::string StragglerTable(const std::vector<StragglerCase>& cases,
                           const std::vector<Measured>& measured);

// One line of JSON per case.
std::string StragglerLines(const std::vector<StragglerCase>& cases,
                           const std::vector<Measured>& measured);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_CASES_H_
