#ifndef LOCKSTEP_DEPLOY_CLI_RUN_ETA_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_ETA_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace lockstep {

// Eta estimates how long the steps that are left will take, from the rate of
// the last kWindow.
class Eta {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(30);

  // Notes that `step` steps were done at `now`. A step that goes back (a job
  // resumed from a checkpoint) or a time that does starts the estimate afresh.
  void Record(absl::Time now, int64_t step);

  // Time from the last record until `train_steps`. Nothing while no step was
  // made within the window.
  std::optional<absl::Duration> Remaining(int64_t train_steps) const;

 private:
  struct Sample {
    absl::Time time;
    int64_t step = 0;
  };

  std::deque<Sample> samples_;  // by time, the oldest first
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_ETA_H_
