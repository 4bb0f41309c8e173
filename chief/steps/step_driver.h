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

// StepDriver makes the steps of a job while its servers are open: it says which
// takes and commits to ask for, what their answers mean, how many steps a
// server that is alone may commit by itself, which worker holds up a step, and
// what the step waits for.
//
// Errors: kAborted  a newer chief has the servers
//         others    of a server that refused for good, with its name in front
class StepDriver {
 public:
  // What an answer has led to.
  enum class Heard {
    kNothing,   // the step goes on
    kStepped,   // the loop is between steps, step() has grown
    kBegunAnew  // ps task 0 has begun the step anew
  };

  StepDriver(const JobConfig& job, int num_servers);

  // All servers are open at `step`. What was asked before counts no more.
  void Open(int64_t step, int replicas_to_aggregate);
  // Servers have left what they had for `step`, and are not open yet.
  void GoBack(int64_t step);

  // Whether servers were open before. The next ones are of open servers.
  bool opened() const { return loop_.has_value(); }
  int64_t step() const { return loop_.has_value() ? loop_->step() : 0; }
  bool between_steps() const { return loop_->between_steps(); }
  // Of the last commit that this round has seen; 0: none.
  int64_t committed_attempt() const { return committed_attempt_; }
  // The round of the servers: which answers count. Grows with Open().
  int64_t round() const { return round_; }

  // Up to here a server that is alone commits by itself. What needs the job to
  // stand still at a step boundary must wait until that step is reached.
  bool MayStandStill() const { return step() >= granted_until_; }

  // Begins the step after step(). `pauses`: the job is to stand still at the
  // next boundary. `next_due`: a checkpoint is due at that step at the latest.
  void Begin(bool pauses, int64_t next_due, absl::Time now, JobActions& out);
  // When the step at hand was begun.
  absl::Time began() const { return began_; }
  // Its time begins now.
  void RestartTime(absl::Time now) { began_ = now; }

  absl::StatusOr<Heard> OnTake(const TakeAnswered& event, absl::Time now,
                               JobActions& out);
  absl::StatusOr<Heard> OnCommit(const CommitAnswered& event, absl::Time now,
                                 JobActions& out);
  // Asks servers again whose calls failed a while ago.
  void AskAgain(absl::Time now, JobActions& out);
  // When AskAgain() will next ask.
  absl::Time next() const { return retries_.next(); }

  // ps task 0 has said that `attempt` of the step after `step` has begun.
  void OnAttempt(int64_t step, int64_t attempt, absl::Time now,
                 JobActions& out);
  int64_t attempt() const { return stalls_.attempt(); }  // 0: not known
  // The worker that has held up the step for so long, if there is one.
  std::optional<int> Stalled(absl::Time now) const {
    return stalls_.Find(now, job_.stall_timeout);
  }

  // What the step waits for.
  StepWaits Waits(const std::vector<MembershipTable::Member>& members) const;

 private:
  void Ask(const SyncLoop::Actions& actions, JobActions& out);
  // Learns from a take how far its server is.
  void Hear(const TakeAnswered& event, absl::Time now);
  void SayWhoDiffers(JobActions& out) const;
  std::string MissingWorkers(
      const std::vector<MembershipTable::Member>& members) const;

  const JobConfig& job_;
  const int num_servers_;
  std::optional<SyncLoop> loop_;
  int64_t round_ = 0;
  Backoff retries_;
  // What ps task 0 could not be asked; nothing while a take is at hand.
  std::optional<SyncLoop::CommitAction> commit_again_;
  int64_t committed_attempt_ = 0;
  int64_t granted_until_ = 0;
  int64_t told_until_ = 0;  // as much of that as the server has been told
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
