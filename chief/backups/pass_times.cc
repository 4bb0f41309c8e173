#include "chief/backups/pass_times.h"

#include <cmath>

namespace lockstep::chief {
namespace {

constexpr double kLargestWeight = 1e150;
constexpr double kSmallestWeight = 1e-150;  // of a bin, once the newest is 1
constexpr double kStale = 1.0 / 8;          // of the newest pass's weight

}  // namespace

PassTimes::PassTimes(double half_life) : growth_(std::exp2(1 / half_life)) {}

void PassTimes::Add(const PassTime& pass) {
  ++count_;
  weight_ *= growth_;
  Bin& bin = bins_[BinOf(absl::ToDoubleSeconds(pass.computed), kParts)];
  (pass.dropped ? bin.dropped : bin.ended) += weight_;
  // New passes weigh more, instead of all old ones less: that would touch every
  // bin.
  if (weight_ > kLargestWeight) Rescale();
}

void PassTimes::Rescale() {
  for (auto& [index, bin] : bins_) {
    bin.ended /= weight_;
    bin.dropped /= weight_;
  }
  weight_ = 1;
  std::erase_if(bins_, [](const auto& entry) {
    return entry.second.ended + entry.second.dropped < kSmallestWeight;
  });
}

PassDistribution PassTimes::Distribution(
    Memory memory, std::optional<absl::Duration> at_hand) const {
  std::map<int, Bin> bins = bins_;
  if (at_hand.has_value()) {
    bins[BinOf(absl::ToDoubleSeconds(*at_hand), kParts)].dropped +=
        weight_ * growth_;
  }
  if (memory == Memory::kFresh) {
    for (auto& [index, bin] : bins) {
      if (bin.ended < kStale * weight_) bin.ended = 0;
    }
    std::erase_if(bins, [](const auto& entry) {
      return entry.second.ended + entry.second.dropped <= 0;
    });
  }
  // From the slow end, so that small weights there are not lost in a difference
  // of large ones.
  std::map<int, double> lasted;  // weight of the passes that reached the bin
  double sum = 0;
  for (auto bin = bins.rbegin(); bin != bins.rend(); ++bin) {
    sum += bin->second.ended + bin->second.dropped;
    lasted[bin->first] = sum;
  }
  PassDistribution distribution;
  const auto add = [&distribution](int part, double mass) {
    const int bin = (part + kParts / 2) / kParts;
    if (distribution.empty() || distribution.back().bin != bin) {
      distribution.push_back({bin, 0});
    }
    distribution.back().mass += mass;
  };
  // Kaplan-Meier: of the probability that is left, each bin takes the fraction
  // of passes that end in it among those that reached it.
  double left = 1;
  for (const auto& [part, bin] : bins) {
    if (bin.ended <= 0) continue;
    const double mass = left * bin.ended / lasted[part];
    add(part, mass);
    left -= mass;
  }
  // Passes that were only dropped have no end: they count at the slowest bin.
  if (left > 0 && !bins.empty()) add(bins.rbegin()->first, left);
  return distribution;
}

}  // namespace lockstep::chief
