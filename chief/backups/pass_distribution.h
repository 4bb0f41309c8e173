#ifndef LOCKSTEP_CHIEF_BACKUPS_PASS_DISTRIBUTION_H_
#define LOCKSTEP_CHIEF_BACKUPS_PASS_DISTRIBUTION_H_

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::chief {

// The times of passes fall into bins, each 2.2 % wider than the one before: 32
// bins for a factor of 2. Bin 0 is around 1 microsecond, the last one around a
// year.
inline constexpr int kBinsPerDoubling = 32;
inline constexpr int kLastBin = 45 * kBinsPerDoubling;

// BinOf() returns the bin of a time in seconds, with each bin divided into
// `parts`; SecondsOf() returns the time in the middle of a bin.
inline int BinOf(double seconds, int parts = 1) {
  if (!(seconds > 1e-6)) return 0;
  const double bin =
      std::round(parts * kBinsPerDoubling * std::log2(seconds * 1e6));
  return static_cast<int>(std::min<double>(bin, parts * kLastBin));
}
inline double SecondsOf(int bin) {
  return 1e-6 * std::exp2(static_cast<double>(bin) / kBinsPerDoubling);
}

// The probability that a pass ends in a bin.
struct PassMass {
  int bin = 0;
  double mass = 0;
};

// A worker's distribution of pass times, by ascending bins. The difference of
// its sum to 1 is the probability of a time that is longer than any seen.
using PassDistribution = std::vector<PassMass>;

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_PASS_DISTRIBUTION_H_
