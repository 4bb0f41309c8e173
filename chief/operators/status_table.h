#ifndef LOCKSTEP_CHIEF_OPERATORS_STATUS_TABLE_H_
#define LOCKSTEP_CHIEF_OPERATORS_STATUS_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/plan/example_shape.h"
#include "common/plan/figure.h"
#include "common/plan/job_state.h"
#include "common/plan/plan.h"
#include "common/plan/run_settings.h"

namespace lockstep::chief {

// StatusTable holds the public state of a job. The chief's loop writes it, and
// the coordinator service reads it. The model's description goes the other way:
// the service writes it, and the loop reads it.
//
//   starting -> training -> finishing -> done
//       `----------+------------+------> failed, stopped
//
// Threads: safe to share.
class StatusTable {
 public:
  struct Evaluation {
    int64_t step = 0;
    double loss = 0;
    double accuracy = 0;
    std::optional<double> auc = {};  // of two classes
    // A user's evaluator reports these in place of the others.
    std::vector<NamedFigure> figures = {};
  };
  // One process that waits.
  struct Wait {
    std::string owner;  // the process, or "the job"
    std::string waits_for;
    absl::Time since;
  };
  // The cost of all deaths so far.
  struct Losses {
    int64_t recoveries = 0;      // times that a server was away
    int64_t steps_redone = 0;    // steps that began anew before their commit
    int64_t steps_repeated = 0;  // committed steps that were lost
    absl::Duration stood_still;  // waits for servers that were away
  };
  // One process that died.
  struct Death {
    std::string task = {};
    std::string reason = {};  // how the chief knows
    std::string held = {};    // e.g. "a token" or "an announcement"
    std::string redone = {};  // the step that it made begin anew; may be empty
    absl::Time at = {};
    // The time from the last step before the death to the first one after it,
    // without pauses, once known.
    std::optional<absl::Duration> stood_still = {};
    // Filled in by Died(): the beginning of that time, and the pauses before
    // it.
    absl::Time still_since = {};
    absl::Duration paused_before = {};
  };
  static constexpr size_t kDeaths = 20;  // that are remembered
  // A message that operators must see once.
  struct Notice {
    // Ascends, also from one chief to the next unless the clock is set back.
    int64_t number = 0;
    std::string text;
  };
  static constexpr size_t kNotices = 20;  // that are remembered
  // The past of a job, for a chief that is started again.
  struct History {
    absl::Duration training_time;
    std::vector<Death> deaths;  // oldest first
    Losses losses;
    bool training = false;  // `training_time` grows
  };
  struct View {
    JobState state = JobState::kStarting;
    absl::Time since = absl::InfinitePast();  // in this state
    std::string reason;
    uint64_t epoch = 0;
    int64_t global_step = 0;
    int64_t last_checkpoint_step = -1;
    absl::Time last_checkpoint_at = absl::InfinitePast();
    absl::Duration training_time;
    double steps_per_second = 0;  // over the last seconds
    std::optional<Evaluation> evaluation;
    std::vector<Wait> waits;
    Losses losses;
    std::vector<Death> deaths;                    // the last ones, oldest first
    std::map<std::string, int64_t> death_counts;  // by task, of this chief
    std::vector<Notice> notices;                  // the last ones, oldest first
    std::string checkpoint_trouble;  // empty: the newest attempt went well
    std::string score_trouble;       // why the last checkpoint stays unscored
    RunSettings settings;            // in effect
    bool hold = false;  // kStopped: the job must not be started again
    // kStopped, kFailed: a checkpoint holds all state of the servers.
    bool state_saved = false;
  };

  // Records a process's description of the model, and the shape of the examples
  // that the model is made for, if given. All descriptions must be equal.
  //
  //   kInvalidArgument  differs from the first description; names the variable
  absl::Status Describe(const std::vector<VariableSpec>& variables,
                        const std::optional<ExampleShape>& examples =
                            std::nullopt) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<ExampleShape> examples() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Empty until the first worker has described the model.
  std::vector<VariableSpec> variables() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Must be called once every variable has its value.
  void PublishPlan(const Plan& plan) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Plan> plan() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the epoch that the chief has taken from the servers.
  void SetEpoch(uint64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartTraining(int64_t global_step, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Stepped(int64_t global_step, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Must be called when the servers go back to the checkpoint of `global_step`,
  // or to the initial values: later checkpoints count no longer, nor do their
  // scores.
  void GoBack(int64_t global_step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the trouble with checkpoints. `at` is the time of the writing.
  void Checkpointed(int64_t step, absl::Time at) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the error of the newest attempt to write a checkpoint.
  void CheckpointFailed(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records why the job ends without the score of its last checkpoint.
  void SetScoreTrouble(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // A paused job has no rate, and its training time does not grow.
  void SetSettings(const RunSettings& settings, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SetLosses(const Losses& losses) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records a death. The time of the standstill follows from the next step.
  void Died(Death death) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the cost of the deaths since the last step.
  void Redone(const std::string& what) ABSL_LOCKS_EXCLUDED(mutex_);
  // `text` is one line.
  void Notify(const std::string& text, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SetWaits(std::vector<Wait> waits) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the state. Training time ends when a state after training is set, and
  // continues if the job trains again, because servers have lost the last steps
  // while the job was finishing. The states done, failed and stopped are final:
  // later calls change nothing.
  void SetState(JobState state, const std::string& reason, absl::Time now,
                bool hold = false) ABSL_LOCKS_EXCLUDED(mutex_);
  // Must be called before SetState() with the state that ends the job.
  void SetStateSaved(bool saved) ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps the score of the newest checkpoint. Until training starts, the job's
  // step is not known: StartTraining() then drops a score that is beyond it, as
  // GoBack() does. If the evaluator has already scored the checkpoint that the
  // job goes on from, that score comes in its place. A score of a step that
  // the job has lost and not reached again is ignored.
  //
  //   kInvalidArgument  the step is none that the job has reached
  absl::Status Evaluated(const Evaluation& evaluation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The step of the newest score; -1: no checkpoint that counts has one.
  int64_t scored_step() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the job's status at `now`.
  View Get(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the job's past up to `now`, for Restore() of a later chief.
  History GetHistory(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the history that an earlier chief has recorded. Only the first call
  // has an effect.
  void Restore(const History& history) ABSL_LOCKS_EXCLUDED(mutex_);
  // True if Restore() still has an effect. A chief that has trained for a while
  // without a history is the job's first chief.
  bool WantsHistory(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The newest step that may have a checkpoint.
  int64_t NewestStep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reach(int64_t global_step, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropScoresBeyond(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The pauses since training started, as of `end`.
  absl::Duration PausedUntil(absl::Time end) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<VariableSpec> variables_ ABSL_GUARDED_BY(mutex_);
  std::optional<ExampleShape> examples_ ABSL_GUARDED_BY(mutex_);
  std::optional<Plan> plan_ ABSL_GUARDED_BY(mutex_);
  View view_ ABSL_GUARDED_BY(mutex_);
  // The newest step from which the job has gone back; -1: it has not.
  int64_t lost_step_ ABSL_GUARDED_BY(mutex_) = -1;
  // The score that was reported last and counts, of any step.
  std::optional<Evaluation> reported_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> started_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> ended_ ABSL_GUARDED_BY(mutex_);
  // Pauses that are over, and the beginning of the present one.
  absl::Duration paused_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> paused_since_ ABSL_GUARDED_BY(mutex_);
  // The history of earlier chiefs, once it is known.
  std::optional<History> earlier_ ABSL_GUARDED_BY(mutex_);
  // Times of recent steps, for the rate.
  std::deque<std::pair<absl::Time, int64_t>> recent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_STATUS_TABLE_H_
