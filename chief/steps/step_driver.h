#ifndef LOCKSTEP_CHIEF_STEPS_STEP_DRIVER_H_
#define LOCKSTEP_CHIEF_STEPS_STEP_DRIVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "chief/members/membership_table.h"
#include "chief/steps/stall_watch.h"
#include "chief/steps/step_pace.h"
#include "chief/steps/step_waits.h"
#include "chief/steps/sync_loop.h"
#include "common/base/backoff.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// StepDriver decides how the steps of a job are made while its servers are
// open:
//
//   the takes and commits to request, and the meaning of their answers
//   the number of steps that a single server may commit without the chief
//   the worker that holds up a step
//   the reasons for which a step waits
//
// Threads: belongs to the chief's loop.
// Borrows: the job.
// Errors: kAborted  the servers obey a newer chief
//         others    a server refused for good; the message names it first
class StepDriver {
 public:
  // The effect of an answer.
  enum class Heard {
    kNothing,   // the step goes on
    kStepped,   // the loop is between steps, step() has grown
    kBegunAnew  // ps task 0 has begun the step anew
  };

  StepDriver(const JobConfig& job, int num_servers);

  // Records that `servers`, those that take part, are open at `step`. Answers
  // to earlier calls no longer count.
  void Open(int64_t step, int replicas_to_aggregate,
            const std::vector<int>& servers);
  // Records that servers have discarded their state for that of `step` and are
  // not open yet.
  void GoBack(int64_t step);

  // True if servers have been open. Must be true before between_steps() is
  // called.
  bool opened() const { return loop_.has_value(); }
  int64_t step() const { return loop_.has_value() ? loop_->step() : 0; }
  bool between_steps() const { return loop_->between_steps(); }
  // The attempt of the last commit in this round; 0: there was none.
  int64_t committed_attempt() const { return committed_attempt_; }
  // The servers that take part, ascending; all before Open().
  const std::vector<int>& servers() const { return servers_; }
  // The number of the servers' round; grows with Open(). Answers of other
  // rounds do not count.
  int64_t round() const { return round_; }

  // True if the job may stand still at this step boundary. A single server
  // commits granted steps without the chief, so a pause, new settings or a
  // checkpoint must wait until the last granted step is reached.
  bool MayStandStill() const { return step() >= granted_until_; }

  // Begins the step after step(). `pauses`: the job must stand still at the
  // next boundary. `next_due`: the step at which a checkpoint is due at the
  // latest.
  void Begin(bool pauses, int64_t next_due, absl::Time now, JobActions& out);
  // The time at which the step at hand was begun.
  absl::Time began() const { return began_; }
  // Restarts the time of the step at hand.
  void RestartTime(absl::Time now) { began_ = now; }

  // Handle a server's answer to a take or to a commit, and add the calls that
  // follow to `out`. An answer of an earlier round has no effect, nor has a
  // take of an earlier step. AskAgain() repeats calls that may succeed later.
  absl::StatusOr<Heard> OnTake(const TakeAnswered& event, absl::Time now,
                               JobActions& out);
  absl::StatusOr<Heard> OnCommit(const CommitAnswered& event, absl::Time now,
                                 JobActions& out);
  // Repeats the calls that failed, after a pause.
  void AskAgain(absl::Time now, JobActions& out);
  // The time of the next call that AskAgain() makes.
  absl::Time next() const { return retries_.next(); }

  // Records that `attempt` of the step after `step` has begun on ps task 0.
  void OnAttempt(int64_t step, int64_t attempt, absl::Time now,
                 JobActions& out);
  // The workers that ps task 0 has announced for the step at hand.
  int num_announced() const { return static_cast<int>(announced_.size()); }
  int64_t attempt() const { return stalls_.attempt(); }  // 0: not known
  // The worker that holds up the step, if there is one, as StallWatch finds it.
  std::optional<StallWatch::Found> Stalled(absl::Time now) const {
    return stalls_.Find(now, job_.stall_timeout);
  }

  // The reasons for which the step at hand waits.
  StepWaits Waits(const std::vector<MembershipTable::Member>& members,
                  absl::Time now) const;

 private:
  void Ask(const SyncLoop::Actions& actions, JobActions& out);
  // Records the progress of a server from its answer to a take.
  void Hear(const TakeAnswered& event, absl::Time now);
  void SayWhoDiffers(JobActions& out) const;
  std::string MissingWorkers(
      const std::vector<MembershipTable::Member>& members,
      absl::Time now) const;

  const JobConfig& job_;
  const int num_servers_;     // of the cluster
  std::vector<int> servers_;  // that take part, ascending
  std::optional<SyncLoop> loop_;
  int64_t round_ = 0;
  int64_t takes_ = 0;                 // that have been asked for
  std::vector<int64_t> newest_take_;  // by server
  Backoff retries_;
  // A commit whose call to ps task 0 failed; empty while a take is at hand.
  std::optional<SyncLoop::CommitAction> commit_again_;
  int64_t committed_attempt_ = 0;
  int64_t granted_until_ = 0;
  int64_t told_until_ = 0;  // the grant of the last take
  // A server has asked for the norm of the mean gradients: such a server
  // commits nothing by itself.
  bool waits_for_norm_ = false;
  StepPace pace_;
  absl::Time began_ = absl::InfinitePast();
  std::vector<std::string> server_waits_;  // by server; empty: prepared
  std::vector<int> announced_;
  // By server: as in TakeResult, of the step at hand.
  std::vector<std::vector<int>> contributors_;
  StallWatch stalls_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_STEP_DRIVER_H_
