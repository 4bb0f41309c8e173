#include "worker/tables/log_odds.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

absl::StatusOr<bool> BinaryLabel(double label) {
  if (label == 1) return true;
  if (label == 0 || label == -1) return false;
  return absl::InvalidArgumentError(
      absl::StrCat("the label is ", label,
                   ", must be 1 for one class and 0 or -1 for the "
                   "other"));
}

double CrossEntropy(bool label, double log_odds) {
  const double z = label ? log_odds : -log_odds;
  // log(1 + exp(-z)), computed so that no exponential overflows.
  return z > 0 ? std::log1p(std::exp(-z)) : std::log1p(std::exp(z)) - z;
}

double Probability(double log_odds) { return 1 / (1 + std::exp(-log_odds)); }

void LogOddsScore::Add(double log_odds, bool label) {
  loss_ += CrossEntropy(label, log_odds);
  // Log odds of 0 count as the other class.
  correct_ += (log_odds > 0) == label;
  scored_.emplace_back(log_odds, label);
}

TableScore LogOddsScore::Get() const {
  const auto count = static_cast<double>(scored_.size());
  return {.loss = loss_ / count,
          .accuracy = correct_ / count,
          .examples = static_cast<int64_t>(scored_.size()),
          .auc = AreaUnderCurve(scored_)};
}

}  // namespace lockstep::worker
