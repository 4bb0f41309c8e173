#ifndef LOCKSTEP_CHIEF_JOB_LAST_CHECKPOINT_H_
#define LOCKSTEP_CHIEF_JOB_LAST_CHECKPOINT_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "chief/job/checkpoint_driver.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// LastCheckpoint makes attempts to save the step at which a job ends in a
// checkpoint:
//
//   idle -> no more tokens -> the checkpoint before has ended -> (the step was
//   saved before: its checkpoint is whole, or) a new one is written -> idle
//
// A checkpoint that is there already, although the step counts as unsaved, is
// checked, too: an attempt that ended with an error may have made it appear.
//
// A job without checkpoints only closes its tokens.
//
// Threads: belongs to the chief's loop.
// Borrows: the job and the checkpoints.
class LastCheckpoint {
 public:
  LastCheckpoint(const JobConfig& job, CheckpointDriver& checkpoints)
      : job_(job), checkpoints_(checkpoints) {}

  // Begins an attempt to save `step`. `attempt` is that of the last commit, as
  // in BeginSnapshot; `round` is StepDriver::round().
  void Try(int64_t step, int64_t attempt, int64_t round, JobActions& out);
  // True while a checkpoint is written that this attempt has begun.
  bool writes() const { return phase_ == Phase::kWriting; }

  // Each returns the result of the attempt once it is over.
  std::optional<absl::Status> OnTokensClosed(const TokensClosed& event,
                                             JobActions& out);
  std::optional<absl::Status> OnSavedChecked(const SavedChecked& event,
                                             JobActions& out);
  // Must be called after `checkpoints` has handled an event.
  std::optional<absl::Status> OnCheckpoint(JobActions& out);

 private:
  enum class Phase { kIdle, kClosing, kJoining, kChecking, kWriting };

  std::optional<absl::Status> End(const absl::Status& status) {
    phase_ = Phase::kIdle;
    return status;
  }
  void Check(JobActions& out);
  void Write(JobActions& out);

  const JobConfig& job_;
  CheckpointDriver& checkpoints_;
  Phase phase_ = Phase::kIdle;
  bool checked_ = false;  // in this attempt
  int64_t step_ = 0;
  int64_t attempt_ = 0;
  int64_t round_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_LAST_CHECKPOINT_H_
