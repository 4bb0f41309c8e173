#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_PASS_LAW_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_PASS_LAW_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {

// PassLaw is the law of a worker's pass times, in seconds. A pass takes at
// least a microsecond.
//
//   50ms, constant(50ms)   every pass
//   normal(50ms, 5ms)      mean, and standard deviation of at most half of it
//   lognormal(50ms, 0.3)   median, and standard deviation of the logarithm
//   exponential(50ms)      mean
//   pareto(50ms, 3)        shortest time, and index: a larger one, fewer long
//                          passes
//   empirical              one of the times of a trace, each equally likely;
//                          copies of the law share the trace
//
// Threads: immutable; each thread must draw with a generator of its own.
class PassLaw {
 public:
  // Parses all but empirical.
  //
  //   kInvalidArgument  an unknown law, or a number out of its range; names it
  static absl::StatusOr<PassLaw> Parse(absl::string_view text);
  // `seconds` must not be empty. Times below a microsecond are drawn as one.
  static PassLaw Empirical(std::vector<double> seconds);

  // Returns the time of one pass, in seconds.
  double Draw(std::mt19937_64& random) const;
  // The mean of many draws, of a fixed seed; of an empirical law, the mean of
  // all its times, since a few long ones may be in none of the draws. The law
  // need not have a mean. Thousands of workers may have copies of one law, so
  // it is found only once.
  double MeanOfDraws() const { return mean_; }
  // The times of an empirical law; null for others.
  const std::vector<double>* trace() const { return trace_.get(); }

 private:
  enum class Kind {
    kConstant,
    kNormal,
    kLognormal,
    kExponential,
    kPareto,
    kEmpirical
  };

  void FindMean();

  Kind kind_ = Kind::kConstant;
  double seconds_ = 0;  // > 0
  double second_ = 0;   // the other number
  std::shared_ptr<const std::vector<double>> trace_;
  double mean_ = 0;
};

// Workers that are slower than the others, as in "3x4": three, four times.
struct SlowWorkers {
  int count = 0;
  double factor = 1;
};
//   kInvalidArgument  another form, a count below 0, or a factor that is not
//                     above 0
absl::StatusOr<SlowWorkers> ParseSlowWorkers(absl::string_view text);

// Events of one worker, as in "1/h" or "2/30s"; per second, in [0, 1000].
//
//   kInvalidArgument  another form, a time that is not above 0, or a higher
//                     rate
absl::StatusOr<double> ParseRate(absl::string_view text);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_PASS_LAW_H_
