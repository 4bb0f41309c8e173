#include "common/numeric/auc.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {

std::optional<double> AreaUnderCurve(std::vector<ScoredExample> examples) {
  // NaN has no place in an order.
  const bool known = std::none_of(
      examples.begin(), examples.end(),
      [](const ScoredExample& example) { return std::isnan(example.first); });
  if (!known) return std::nullopt;
  std::sort(examples.begin(), examples.end());
  double won = 0;        // pairs
  double negatives = 0;  // examples with a lower score than the current ones
  double positives = 0;
  for (size_t i = 0; i < examples.size();) {
    double tied_positives = 0;
    double tied_negatives = 0;
    const double score = examples[i].first;
    for (; i < examples.size() && examples[i].first == score; ++i) {
      (examples[i].second ? tied_positives : tied_negatives) += 1;
    }
    // Each positive wins against the negatives with lower scores and half of
    // those with the same.
    won += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return won / (positives * negatives);
}

}  // namespace lockstep
