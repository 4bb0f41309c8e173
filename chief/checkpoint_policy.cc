#include "chief/checkpoint_policy.h"

namespace lockstep {

bool CheckpointPolicy::Due(int64_t step, absl::Time now) const {
  if (config_.directory.empty() || step == last_step_) return false;
  if (config_.every_steps > 0 && step % config_.every_steps == 0) return true;
  return config_.every > absl::ZeroDuration() &&
         now - last_time_ >= config_.every;
}

void CheckpointPolicy::Saved(int64_t step, absl::Time now) {
  last_step_ = step;
  last_time_ = now;
}

}  // namespace lockstep
