#include "chief/checkpoint/checkpoint_policy.h"

#include <limits>

namespace lockstep::chief {

bool CheckpointPolicy::Due(int64_t step, absl::Time now) const {
  if (config_.directory.empty() || step == last_step_) return false;
  // A paused job asks for the same step again and again.
  if (config_.every_steps > 0 && step % config_.every_steps == 0 &&
      step != failed_step_) {
    return true;
  }
  return config_.every > absl::ZeroDuration() &&
         now - last_time_ >= config_.every;
}

int64_t CheckpointPolicy::NextDueStep(int64_t step) const {
  if (config_.directory.empty() || config_.every_steps <= 0) {
    return std::numeric_limits<int64_t>::max();
  }
  return (step / config_.every_steps + 1) * config_.every_steps;
}

void CheckpointPolicy::Saved(int64_t step, absl::Time now) {
  last_step_ = step;
  last_time_ = now;
}

// last_step_ stays: no checkpoint has that step.
void CheckpointPolicy::Failed(int64_t step, absl::Time now) {
  failed_step_ = step;
  last_time_ = now;
}

}  // namespace lockstep::chief
