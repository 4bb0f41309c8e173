#ifndef LOCKSTEP_CHIEF_STEPS_STEP_PACE_H_
#define LOCKSTEP_CHIEF_STEPS_STEP_PACE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep::chief {

// StepPace decides how many steps a server that is alone may commit by itself,
// and how seldom the chief needs to ask for its progress. Without grants, steps
// of a fraction of a millisecond would cost the chief as much work as the
// server. Few slow steps are granted, since an operator's wish waits for all
// granted steps.
//
// Threads: belongs to the chief's loop.
class StepPace {
 public:
  // The time that the granted steps take together, about.
  static constexpr absl::Duration kGranted = absl::Milliseconds(20);
  static constexpr int64_t kFewest = 2;
  static constexpr int64_t kMost = 64;
  // Between two takes, if steps are short.
  static constexpr absl::Duration kLongestPause = absl::Milliseconds(5);

  // Records the global step at `now`. A step below the last one resets the
  // pace.
  void Stepped(int64_t step, absl::Time now);

  // Steps to grant, in [kFewest, kMost].
  int64_t Ahead() const;

  // The time that the next take can wait while the server may commit up to
  // `granted_until`: at most half of the time of those steps; zero if the take
  // would report hardly more than one step.
  absl::Duration Pause(int64_t granted_until) const;

 private:
  int64_t step_ = -1;
  absl::Time at_ = absl::InfinitePast();
  absl::Duration of_step_ = absl::InfiniteDuration();  // recent ones count most
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_STEP_PACE_H_
