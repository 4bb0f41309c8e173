#include "chief/backups/arrival_times.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

namespace lockstep::chief {
namespace {

// A number of missing workers this many standard deviations below the expected
// one is practically impossible.
constexpr double kFarOff = 8;

// By number, the probability that so many passes have not ended.
class Missing {
 public:
  explicit Missing(size_t most) : chance_(most + 1) {}

  // Computes the probabilities. `late`: by worker, the probability that its
  // pass has not ended.
  void Count(const std::vector<double>& late) {
    std::fill(chance_.begin(), chance_.end(), 0);
    double mean = 0;
    for (const double one : late) mean += one;
    const double most = static_cast<double>(chance_.size()) - 1;
    // The variance of such a sum is at most its mean.
    if (mean - kFarOff * std::sqrt(mean) > most) return;
    chance_[0] = 1;
    size_t counted = 0;
    for (const double one : late) {
      if (one <= 0) continue;
      counted = std::min(counted + 1, chance_.size() - 1);
      // Downwards, so that each value is read before it is overwritten.
      for (size_t missing = counted; missing > 0; --missing) {
        chance_[missing] =
            chance_[missing] * (1 - one) + chance_[missing - 1] * one;
      }
      chance_[0] *= 1 - one;
    }
  }

  double operator[](size_t missing) const { return chance_[missing]; }

 private:
  std::vector<double> chance_;
};

}  // namespace

std::vector<double> ExpectedArrivals(
    const std::vector<PassDistribution>& workers, int most_missing,
    double longest) {
  if (workers.empty()) return {};
  const size_t elements = std::min<size_t>(
      static_cast<size_t>(std::max(most_missing, 0)) + 1, workers.size());
  std::set<int> bins;
  for (const PassDistribution& worker : workers) {
    for (const PassMass& mass : worker) bins.insert(mass.bin);
  }
  std::vector<double> late(workers.size(), 1);
  std::vector<size_t> next(workers.size());
  std::vector<double> arrived(elements);  // the probability so far
  std::vector<double> expected(elements);
  Missing missing(elements - 1);
  for (const int bin : bins) {
    for (size_t i = 0; i < workers.size(); ++i) {
      while (next[i] < workers[i].size() && workers[i][next[i]].bin == bin) {
        // Rounding may lead below 0.
        late[i] = std::max(late[i] - workers[i][next[i]++].mass, 0.0);
      }
    }
    missing.Count(late);
    double at_most = 0;
    for (size_t i = 0; i < elements; ++i) {
      at_most += missing[i];
      // The probability that all but i passes end in this bin, times its time.
      expected[i] += std::min(SecondsOf(bin), longest) * (at_most - arrived[i]);
      arrived[i] = at_most;
    }
  }
  for (size_t i = 0; i < elements; ++i)
    expected[i] += longest * (1 - arrived[i]);
  return expected;
}

}  // namespace lockstep::chief
