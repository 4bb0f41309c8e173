#ifndef LOCKSTEP_CHIEF_JOB_MEMBER_DEATHS_H_
#define LOCKSTEP_CHIEF_JOB_MEMBER_DEATHS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chief/events/job_events.h"
#include "chief/job/job_context.h"
#include "chief/job/workers_left.h"
#include "chief/members/membership_table.h"
#include "chief/servers/server_report.h"
#include "chief/steps/step_driver.h"
#include "chief/steps/worker_burials.h"

namespace lockstep::chief {

// MemberDeaths decides the consequences of a member's end: a dead worker is
// removed from the step; a dead server must come back, or in an elastic job of
// mirrors is given up in time; a ps task that has left, unless it is such a
// mirror, or too few remaining workers, end the job.
//
// Threads: belongs to the chief's loop.
// Borrows: context and steps.
class MemberDeaths {
 public:
  MemberDeaths(JobContext& context, StepDriver& steps)
      : context_(context),
        steps_(steps),
        burials_(context.job.elastic_workers ? RunSettings::kMaxWorkers
                                             : context.job.total_num_replicas),
        workers_left_(context.job, context.settings) {}

  // Handles all members that are dead or have left. On an error the caller must
  // end the job:
  //
  //   kResourceExhausted  a table is full
  //   kAborted            too few workers are left that can take part
  absl::Status BuryAll();
  // As BuryAll(), once training has ended: no step needs the workers, so that
  // their failures do not end the job.
  void BuryAfterTraining();
  // As BuryAll(), while servers are not together: dead workers stay unburied,
  // unless the servers have no values yet.
  absl::Status BuryBeforeRound();
  // Called before servers start from a checkpoint, or without values. Until
  // they have values, a dead worker (such as the one that gives the first
  // values) holds nothing on them, so it needs no burial. Workers whose data
  // has ended have data again for the steps that are made once more.
  void StartAnew(bool without_values) {
    without_values_ = without_values;
    workers_left_.BeginAnew();
  }

  // Gives up mirrors that do not come back, of a job that may do without them.
  // Must be called before a round; the job has waited for servers since
  // `since`. `ended`: it makes no more steps, for which it may need them.
  // `stops`: it waits for none that may be given up, so that the others write
  // its last checkpoint.
  void GiveUpTheAbsent(absl::Time since, bool stops, bool ended);
  // Sends all workers back to register if `servers` are not those that are
  // open: other mirrors sum the parts then, so that workers need another plan.
  void SendBackForPlan(const std::vector<int>& servers);
  // Leaves out a mirror of an elastic job that could not open its state. Unless
  // the error may pass, it has left the job until its process is started again.
  // `why` names it.
  void LeaveOut(int server, const absl::Status& why);
  // Takes the workers of mirrors that were given up out of an elastic job,
  // whose settings must be open. If these were `opened` just now, also takes
  // out the workers that have left, which closed settings do not note.
  void TakeOutTheAbsent(bool opened);

  // Handles an answer to Expire. `in_step`: a step is being made.
  //
  //   kAborted  there is a newer chief
  absl::Status OnExpireAnswered(const ExpireAnswered& event, bool in_step);

  // Forgets the burials under way: a round of the servers makes them void.
  void Forget() { burials_.Forget(); }

  // True if a server has died since the last call; clears that mark.
  bool TakeServerAway() { return std::exchange(server_away_, false); }
  bool server_away() const { return server_away_; }

  // As WorkersLeft::InputEnded().
  bool InputEnded() const { return workers_left_.InputEnded(context_.members); }
  // As WorkersLeft::TooFewStay(); false in elastic jobs, where steps continue
  // with fewer workers.
  bool TooFewStay() const {
    return !context_.job.elastic_workers &&
           workers_left_.TooFewStay(context_.members.Members());
  }
  // Records which workers have used up their data, as servers report it.
  void OnFound(absl::Span<const ServerReport> reports);
  std::vector<int> EndedInput() const { return workers_left_.ended_input(); }

 private:
  absl::Status BuryWorker(const MembershipTable::Dead& dead);
  void BuryOther(const MembershipTable::Dead& dead);
  void Buried(const MembershipTable::Dead& dead,
              const ShardCalls::Expired& held);

  JobContext& context_;
  StepDriver& steps_;
  WorkerBurials burials_;
  WorkersLeft workers_left_;
  bool server_away_ = false;
  bool without_values_ = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_MEMBER_DEATHS_H_
