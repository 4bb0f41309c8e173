#ifndef LOCKSTEP_TESTS_BENCHMARK_PASS_TIMES_H_
#define LOCKSTEP_TESTS_BENCHMARK_PASS_TIMES_H_

#include <random>

#include "absl/time/time.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// PassTimes says how long each pass of a worker takes that sleeps in place of
// computing: the same in each run, since the worker's index is the seed.
//
// Threads: not thread-safe.
class PassTimes {
 public:
  PassTimes(const RoleOptions& options, int worker);

  // How long the worker stands still before a pass that begins at `now`. From
  // one such time to the next it works for hang_every_ms.
  absl::Duration Hang(absl::Time now);

  // The time of the next pass. With `sigma` it is lognormal, of the mean that
  // it has without: exp(sigma z - sigma^2 / 2) for a normal z has the mean 1.
  absl::Duration Next();

 private:
  const absl::Duration mean_;
  const double sigma_;
  const absl::Duration hang_;  // zero: never
  const absl::Duration hang_every_;
  absl::Time next_hang_ = absl::InfinitePast();  // not known yet
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_PASS_TIMES_H_
