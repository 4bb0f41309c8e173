#ifndef LOCKSTEP_CHIEF_JOB_CHECKPOINT_DRIVER_H_
#define LOCKSTEP_CHIEF_JOB_CHECKPOINT_DRIVER_H_

#include <algorithm>
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

// CheckpointDriver decides when a checkpoint is written, one at a time, and
// reports the result to operators.
//
//   idle --Start()--> copying --OnBegun()--> writing --OnDone()--> idle
//                        `---- it failed ----------------------------^
//
// Threads: belongs to the chief's loop.
// Borrows: the job.
class CheckpointDriver {
 public:
  explicit CheckpointDriver(const JobConfig& job) : job_(job) {}

  // Begins at the step from which training continues. The next due step is
  // counted from `last_step`; `saved_step` is the step of the newest
  // checkpoint, -1 if there is none.
  void Begin(int64_t last_step, int64_t saved_step, absl::Time now);

  // Requests a checkpoint at the next step boundary, for an operator.
  void Want() { wanted_ = true; }
  // True if a checkpoint must begin at the next possible boundary after `step`.
  bool IsToBegin(int64_t step, absl::Time now) const {
    return !busy() && (wanted_ || policy_->Due(step, now));
  }
  // True if a checkpoint was due by number at or before `step`, after the
  // newest one, which Begin() was passed.
  bool LacksOneAt(int64_t step) const {
    return policy_->NextDueStep(std::max<int64_t>(saved_step_, 0)) <= step;
  }
  // As CheckpointPolicy::NextDueStep().
  int64_t NextDueStep(int64_t step) const { return policy_->NextDueStep(step); }

  // Begins a checkpoint of `step` if one is due or wanted and none is being
  // written. While copying() is true, no later step may begin before OnBegun().
  void MaybeStart(int64_t step, int64_t attempt, absl::Time now,
                  JobActions& out);
  // As MaybeStart(), in any case. No other checkpoint may be under way.
  void Start(int64_t step, int64_t attempt, JobActions& out);

  // Handles the end of the copy, or its failure. `quiet`: the caller reports a
  // failure itself.
  void OnBegun(const SnapshotBegun& event, bool quiet, absl::Time now,
               JobActions& out);
  void OnDone(const SnapshotDone& event, absl::Time now, JobActions& out);

  // Reports that `who`, such as "the end", has waited since `since` for the
  // checkpoint that is being written.
  void ReportWait(const std::string& who, absl::Time since, absl::Time now,
                  JobActions& out);

  // Records that the checkpoint of `step` is there, also if the attempt to
  // write it ended with an error.
  void Saved(int64_t step, JobActions& out);

  bool busy() const { return phase_ != Phase::kIdle; }
  // True if the checkpoint has been written for max_wait: its volume may hang,
  // so a job that fails must not wait for it any longer. It may still appear.
  bool IsOverdue(absl::Time now) const {
    return phase_ == Phase::kWriting && now - writes_since_ >= job_.max_wait;
  }
  // Returns OK, or, if the checkpoint is overdue, the reason why a job that
  // must end does not wait for it any longer.
  absl::Status CheckNotOverdue(absl::Time now) const;
  bool copying() const { return phase_ == Phase::kCopying; }
  int64_t saved_step() const { return saved_step_; }  // -1: none
  // The result of the newest checkpoint that has ended.
  const absl::Status& last_result() const { return last_result_; }

 private:
  enum class Phase { kIdle, kCopying, kWriting };

  // Reports a failure. Training continues until the next checkpoint is due.
  void Failed(int64_t step, const absl::Status& status, absl::Time now,
              JobActions& out);

  const JobConfig& job_;
  std::optional<CheckpointPolicy> policy_;
  CheckpointTrouble trouble_;
  Phase phase_ = Phase::kIdle;
  int64_t step_ = 0;  // of the checkpoint that is, or was last, written
  absl::Time writes_since_;
  absl::Time said_at_ = absl::InfinitePast();  // by ReportWait()
  bool wanted_ = false;
  int64_t saved_step_ = -1;
  absl::Status last_result_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_CHECKPOINT_DRIVER_H_
