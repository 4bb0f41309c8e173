#ifndef LOCKSTEP_CHIEF_JOB_CHECKPOINT_DRIVER_H_
#define LOCKSTEP_CHIEF_JOB_CHECKPOINT_DRIVER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/checkpoint/checkpoint_policy.h"
#include "chief/checkpoint/checkpoint_trouble.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// CheckpointDriver says when a checkpoint is written, one at a time, and tells
// operators what has become of it.
//
//   idle --Start()--> copying --OnBegun()--> writing --OnDone()--> idle
//                        `---- it failed ----------------------------^
class CheckpointDriver {
 public:
  explicit CheckpointDriver(const JobConfig& job) : job_(job) {}

  // Training goes on from `step`, of which the last checkpoint is, or of an
  // older one where that is said; -1: there is none.
  void Begin(int64_t last_step, int64_t saved_step, absl::Time now);

  // An operator wants one at the next step boundary.
  void Want() { wanted_ = true; }
  // Whether one is to be begun at the boundary after `step` that can be.
  bool IsToBegin(int64_t step, absl::Time now) const {
    return !busy() && (wanted_ || policy_->Due(step, now));
  }
  // As CheckpointPolicy::NextDueStep().
  int64_t NextDueStep(int64_t step) const { return policy_->NextDueStep(step); }

  // Begins one of `step` if it is due or wanted and none is being written. Then
  // copying() is true, and no later step must begin before OnBegun().
  void MaybeStart(int64_t step, int64_t attempt, absl::Time now,
                  JobActions& out);
  // Begins one. Call it only if none is under way.
  void Start(int64_t step, int64_t attempt, JobActions& out);

  // `quiet`: a failure is left to the caller to be told.
  void OnBegun(const SnapshotBegun& event, bool quiet, absl::Time now,
               JobActions& out);
  void OnDone(const SnapshotDone& event, absl::Time now, JobActions& out);

  bool busy() const { return phase_ != Phase::kIdle; }
  bool copying() const { return phase_ == Phase::kCopying; }
  int64_t saved_step() const { return saved_step_; }  // -1: none
  // The result of the checkpoint that was begun last and has ended.
  const absl::Status& last_result() const { return last_result_; }

 private:
  enum class Phase { kIdle, kCopying, kWriting };

  // Training goes on without it, until the next one is due.
  void Failed(int64_t step, const absl::Status& status, absl::Time now,
              JobActions& out);

  const JobConfig& job_;
  std::optional<CheckpointPolicy> policy_;
  CheckpointTrouble trouble_;
  Phase phase_ = Phase::kIdle;
  bool wanted_ = false;
  int64_t saved_step_ = -1;
  absl::Status last_result_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_CHECKPOINT_DRIVER_H_
