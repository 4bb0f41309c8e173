#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_POLICY_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_POLICY_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// CheckpointPolicy decides whether a checkpoint is due at a step boundary:
// every k steps or every s seconds, whichever comes first.
//
// Threads: belongs to the chief's loop.
class CheckpointPolicy {
 public:
  // Begins with the last checkpoint, of `step`, written at `now`; for a fresh
  // job, with its start.
  CheckpointPolicy(const CheckpointConfig& config, int64_t step, absl::Time now)
      : config_(config), last_step_(step), last_time_(now) {}

  // True if a checkpoint is due at the boundary after `step`.
  bool Due(int64_t step, absl::Time now) const;
  // Records that a due checkpoint is begun or left out: the next one is due by
  // time when the whole time has passed again.
  void Tried(absl::Time now) { last_time_ = now; }
  // Records that the checkpoint of `step` was written.
  void Saved(int64_t step, absl::Time now);
  // Records that the due checkpoint of `step` could not be written. The next
  // one is due at the same step or time as after a checkpoint that was written.
  void Failed(int64_t step, absl::Time now);

  // Returns the first step after `step` at which a checkpoint is due by number.
  int64_t NextDueStep(int64_t step) const;

 private:
  const CheckpointConfig config_;
  int64_t last_step_;
  int64_t failed_step_ = -1;  // newest that could not be written
  absl::Time last_time_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_POLICY_H_
