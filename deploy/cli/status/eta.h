#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_ETA_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_ETA_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace lockstep::cli {

// Eta estimates the time of the remaining steps from the rate of the last
// kWindow.
//
// Threads: not thread-safe. Times need not be of the wall clock.
class Eta {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(30);

  // Records that `step` steps were done at `now`. If `step` (a job resumed from
  // a checkpoint) or `now` goes back, the estimate starts again.
  void Record(absl::Time now, int64_t step);

  // Returns the time from the last record until `train_steps`. Returns nothing
  // if no step was made within the window.
  std::optional<absl::Duration> Remaining(int64_t train_steps) const;

 private:
  struct Sample {
    absl::Time time;
    int64_t step = 0;
  };

  std::deque<Sample> samples_;  // by time, the oldest first
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_ETA_H_
