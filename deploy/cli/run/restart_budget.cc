#include "deploy/cli/run/restart_budget.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::cli {

std::optional<absl::Time> RestartBudget::Take(absl::Time now) {
  while (!taken_.empty() && now - taken_.front() >= kWindow) {
    taken_.pop_front();
  }
  if (taken_.size() >= static_cast<size_t>(std::max(0, restarts_))) {
    return std::nullopt;
  }
  absl::Duration pause = kFirstPause;
  // Restarts that have left the window count no more: a task that ran for long
  // restarts soon.
  for (size_t i = 0; i < taken_.size() && pause < kLongestPause; ++i) {
    pause *= 2;
  }
  taken_.push_back(now);
  return now + std::min(pause, kLongestPause);
}

}  // namespace lockstep::cli
