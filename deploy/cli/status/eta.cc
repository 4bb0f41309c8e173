#include "deploy/cli/status/eta.h"

#include <algorithm>

namespace lockstep::cli {

void Eta::Record(absl::Time now, int64_t step) {
  if (!samples_.empty() &&
      (step < samples_.back().step || now < samples_.back().time)) {
    samples_.clear();
  }
  samples_.push_back({now, step});
  // One sample from before the window stays, so that the rate is that of a
  // whole window, and of two samples at least.
  while (samples_.size() > 2 && samples_[1].time <= now - kWindow) {
    samples_.pop_front();
  }
}

std::optional<absl::Duration> Eta::Remaining(int64_t train_steps) const {
  if (samples_.size() < 2) return std::nullopt;
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const double steps =
      static_cast<double>(last.step) - static_cast<double>(first.step);
  const double seconds = absl::ToDoubleSeconds(last.time - first.time);
  if (steps <= 0 || seconds <= 0) return std::nullopt;
  const double left =
      static_cast<double>(train_steps) - static_cast<double>(last.step);
  return absl::Seconds(std::max(0.0, left) * seconds / steps);
}

}  // namespace lockstep::cli
