#ifndef LOCKSTEP_CHIEF_OPERATORS_SETTINGS_TABLE_H_
#define LOCKSTEP_CHIEF_OPERATORS_SETTINGS_TABLE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/members/membership_table.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "common/job/job_config.h"
#include "common/plan/run_settings.h"
#include "common/plan/variable_spec.h"

namespace lockstep::chief {

// The most gradients of a step, as in job files.
inline constexpr int kMaxReplicas = 1'000'000;

// A change that an operator asks for; an absent field stays as it is.
struct SettingsChange {
  std::optional<int> replicas_to_aggregate = {};
  std::optional<double> learning_rate = {};  // base of the schedule
  std::optional<bool> paused = {};
  std::optional<int> remove_worker = {};  // of an elastic job
};

// SettingsTable receives the changes that operators want for a running job, and
// decides whether each is possible. The chief's loop reads wanted() and applies
// it at a step boundary; several changes may be waiting at once.
//
//   closed -> (training) open -> (the end) closed
//
// Workers of an elastic job also join and leave here. The job's policy fixes
// either the number of backups or the number of gradients of a step:
//
//   FIXED_BACKUPS                A = max(1, N - backups)
//   FIXED_REPLICAS_TO_AGGREGATE  A = min(N, replicas)
//
// A change of replicas_to_aggregate by an operator changes the fixed number.
//
// Threads: safe to share.
// Errors:  a call that fails has changed nothing.
class SettingsTable {
 public:
  // `job` must have its replicas filled in.
  explicit SettingsTable(const JobConfig& job);

  // Opens the table: training begins or continues with these settings.
  void Open(const RunSettings& in_effect) ABSL_LOCKS_EXCLUDED(mutex_);
  // Refuses every change from now on, with `reason` as the message. With
  // `over`, the job has ended, so that no worker can join any more.
  void Close(const std::string& reason, bool over = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the job is asked to stop: operators' changes are refused from
  // now on, with `reason` as the message. Workers may still leave, so that the
  // step at hand can end.
  void Stop(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records a change. Returns the revision that will have it.
  //
  //   kInvalidArgument     a value that no job can have
  //   kFailedPrecondition  a value that this job cannot have, or it is not
  //                        training, or it stops
  absl::StatusOr<int64_t> Change(const SettingsChange& change)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that the chief has changed the gradients of a step, in a job whose
  // file says AUTO.
  void Tune(int replicas) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that a checkpoint is wanted at the next step boundary.
  //
  //   kFailedPrecondition  the job writes none, or it is not training, or it
  //                        stops
  absl::Status RequestCheckpoint() ABSL_LOCKS_EXCLUDED(mutex_);
  bool checkpoint_wanted() const ABSL_LOCKS_EXCLUDED(mutex_);
  void CheckpointBegun() ABSL_LOCKS_EXCLUDED(mutex_);

  // Records how many training examples the workers divide among themselves, as
  // a worker has counted them; ignores a number that is not positive.
  void KnowExamples(int64_t count) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records the variables of the model: a later new learning rate must be in
  // the range of their types.
  void KnowVariables(const std::vector<VariableSpec>& variables)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Elastic jobs: admits a worker that registers. `again`: the same process has
  // taken part before. `mirror`: the ps of its index, which must be alive in a
  // job of mirrors; others ignore it.
  //
  //   kUnavailable         it will take part once the change is applied, or
  //                        once its mirror has registered; retry
  //   kCancelled, held     the worker was taken out, and this is the same
  //                        process; a new process may join
  //   kNotFound            the job is not elastic, or has no mirror for it
  //   kInvalidArgument     an index that is too large
  //   kFailedPrecondition  there are too few examples for another worker, or
  //                        the job is over
  absl::Status Join(int worker, bool again,
                    const MembershipTable::Member& mirror = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks that the task takes part in the job whose settings are `in_effect`.
  // Every task does, with two exceptions: workers that an elastic job has not
  // admitted get the answer of Join(), and mirrors that the chief has left out
  // get an error until another process takes their place. `mirror` is the ps of
  // the task's index.
  //
  //   kFailedPrecondition  also: this process's mirror was left out
  absl::Status CheckTakesPart(const TaskId& task, bool again,
                              const RunSettings& in_effect,
                              const MembershipTable::Member& mirror = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The reason why a worker is taken out.
  enum class WhyOut {
    kLeft,     // the same process must not come back
    kIfAsked,  // it is dead, and is taken out only if an operator has asked it
               // to leave: its next process is then told so
    kAway      // its mirror does not come back; any process may
  };
  // Takes out a worker. The last worker of a job cannot be taken out. No effect
  // while the table is closed.
  void Leave(int worker, WhyOut why = WhyOut::kLeft)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True if an operator has asked the worker to leave.
  bool IsToLeave(int worker) const ABSL_LOCKS_EXCLUDED(mutex_);

  RunSettings wanted() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Elastic jobs of mirrors: checks that the worker has one.
  absl::Status CheckMirror(int worker,
                           const MembershipTable::Member& mirror) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckReplicas(int replicas) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRemoval(int worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks that `workers` of them have a batch each.
  absl::Status CheckShares(int64_t workers) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int num_workers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets the workers that take part, and computes A from their number.
  void SetWorkers(std::vector<int> workers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The number that the job's policy fixes: of backups, or of gradients.
  int FixedOf(int replicas, int workers) const;

  const JobConfig job_;

  mutable Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  std::string closed_ ABSL_GUARDED_BY(mutex_) =
      "the job has not begun to train";
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::string stops_ ABSL_GUARDED_BY(mutex_);  // empty: it does not
  RunSettings wanted_ ABSL_GUARDED_BY(mutex_);
  int fixed_ ABSL_GUARDED_BY(mutex_);  // backups or gradients, by the policy
  int64_t examples_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not known
  // By optimizer, the type of its variables with the fewest numbers.
  std::vector<DType> types_ ABSL_GUARDED_BY(mutex_);
  std::set<int> to_leave_ ABSL_GUARDED_BY(mutex_);
  std::set<int> taken_out_ ABSL_GUARDED_BY(mutex_);  // since this chief began
  // Taken out, but dead before they could be told to leave.
  std::set<int> untold_ ABSL_GUARDED_BY(mutex_);
  bool checkpoint_wanted_ ABSL_GUARDED_BY(mutex_) = false;
};

// The settings at the beginning of a job, from its file.
RunSettings InitialSettings(const JobConfig& job);

// Returns the differences for the log, e.g. "replicas_to_aggregate 2 -> 3,
// learning_rate 0.1 -> 0.05".
std::string DescribeChange(const JobConfig& job, const RunSettings& from,
                           const RunSettings& to);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_SETTINGS_TABLE_H_
