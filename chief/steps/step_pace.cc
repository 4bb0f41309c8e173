#include "chief/steps/step_pace.h"

#include <algorithm>

namespace lockstep::chief {

void StepPace::Stepped(int64_t step, absl::Time now) {
  if (step_ >= 0 && step > step_) {
    const absl::Duration each = (now - at_) / (step - step_);
    // Slower at once, faster by half: a grant that is too large delays an
    // operator's wish, one that is too small costs a call.
    of_step_ = of_step_ == absl::InfiniteDuration() || each > of_step_
                   ? each
                   : (of_step_ + each) / 2;
  }
  step_ = step;
  at_ = now;
}

int64_t StepPace::Ahead() const {
  // Steps within the clock's resolution.
  if (of_step_ <= absl::ZeroDuration()) return kMost;
  const double steps = absl::FDivDuration(kGranted, of_step_);
  return std::clamp(static_cast<int64_t>(std::min<double>(steps, kMost)),
                    kFewest, kMost);
}

absl::Duration StepPace::Pause(int64_t granted_until) const {
  // Unknown or slow steps: the server answers the take in time by itself.
  if (step_ < 0 || of_step_ > kLongestPause / 2) return absl::ZeroDuration();
  const int64_t left = std::max<int64_t>(0, granted_until - step_);
  return std::min(kLongestPause, left * of_step_ / 2);
}

}  // namespace lockstep::chief
