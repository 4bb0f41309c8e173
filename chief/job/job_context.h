#ifndef LOCKSTEP_CHIEF_JOB_JOB_CONTEXT_H_
#define LOCKSTEP_CHIEF_JOB_JOB_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/events/job_actions.h"
#include "chief/job/job_settings.h"
#include "chief/members/membership_table.h"
#include "chief/members/servers_in_use.h"
#include "chief/operators/status_table.h"
#include "common/base/stop_status.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// Records in `stop` a wish to stop. A wish that holds the job (IsHeld())
// replaces one that does not.
inline void RecordStop(const absl::Status& wish,
                       std::optional<absl::Status>& stop) {
  if (!stop.has_value() || (IsHeld(wish) && !IsHeld(*stop))) stop = wish;
}

// JobContext is the state that the parts of a JobDriver share: the job, the
// event that is being handled, the wishes of operators, and the losses so far.
//
// Borrows: the job and the members.
struct JobContext {
  // `anew`: as in ServersInUse.
  JobContext(const JobConfig& of_job, MembershipTable& of_members,
             absl::Time at, bool anew = false)
      : job(of_job),
        members(of_members),
        now(at),
        settings(of_job),
        servers(of_job, of_members, anew) {}

  const JobConfig& job;
  MembershipTable& members;
  absl::Time now;  // of the event
  JobActions out;  // the effects of the event
  JobSettings settings;
  ServersInUse servers;
  std::optional<absl::Status> stop;  // StoppedStatus(), if wanted
  absl::Time stop_wanted_at;         // at the first WantStop()
  StatusTable::Losses losses;
  int64_t reached = 0;  // the step of the last StepReached
  int64_t redone = -1;  // of the last NoteRedone()

  // Renews all leases if the last tick was long ago: after a suspension of this
  // process, or a long round, the members' silence proves nothing.
  void ForgiveSilence(absl::Time last_tick) {
    if (now - last_tick > job.lease / 2) members.RenewAll(now);
  }

  // `stop`; OK if no stop is wanted.
  absl::Status Stop() const { return stop.value_or(absl::OkStatus()); }

  // As RecordStop().
  void WantStop(const absl::Status& status) {
    if (!stop.has_value()) stop_wanted_at = now;
    RecordStop(status, stop);
  }
  void Reach(int64_t step) {
    reached = step;
    out.push_back(StepReached{step});
  }
  // As Reach(), after a round: servers may have committed a step whose answer
  // the chief has not received.
  void Found(int64_t step) {
    if (step != reached) Reach(step);
  }
  // Lets settings be changed, from those in effect on.
  void AdmitSettings() {
    settings.WantNothing();
    out.push_back(OpenSettings{settings.now()});
  }
  // Counts that the step after `step` began anew. Counts each step once,
  // although it begins anew for each member that is lost in it.
  void NoteRedone(int64_t step) {
    if (CountRedone(step)) out.push_back(LossesSoFar{losses});
  }
  // As NoteRedone(), without a report. Returns false if the step is counted
  // already.
  bool CountRedone(int64_t step) {
    if (redone == step) return false;
    redone = step;
    ++losses.steps_redone;
    return true;
  }
  // Reports the death of `task`. `held` is the claim that it had on the step,
  // for example a token; `redone` is the step that begins anew for it, or
  // empty.
  void NoteDeath(const std::string& task, const std::string& reason,
                 const std::string& held, const std::string& redone = "") {
    out.push_back(ProcessDied{{.task = task,
                               .reason = reason,
                               .held = held,
                               .redone = redone,
                               .at = now}});
  }
  // As NoteDeath(), for this chief's predecessor. `still_since` is the earliest
  // time at which this chief knows that the job stood still.
  void NoteChiefDeath(absl::Time still_since, int64_t step, bool redo) {
    out.push_back(ProcessDied{
        {.task = "chief",
         .reason = "started again",
         .held = absl::StrCat("nothing: the servers hold step ", step),
         .redone = redo ? absl::StrCat("step ", step + 1) : "",
         .at = still_since}});
  }
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_JOB_CONTEXT_H_
