#ifndef LOCKSTEP_CHIEF_JOB_MEMBER_DEATHS_H_
#define LOCKSTEP_CHIEF_JOB_MEMBER_DEATHS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/events/job_events.h"
#include "chief/job/job_context.h"
#include "chief/job/workers_left.h"
#include "chief/members/membership_table.h"
#include "chief/steps/step_driver.h"
#include "chief/steps/worker_burials.h"

namespace lockstep::chief {

// MemberDeaths says what the end of a member means: a worker is taken out of
// the step, a server has to come back, a ps task that has left ends the job,
// and so do too few workers.
//
// Borrows: context and steps.
class MemberDeaths {
 public:
  MemberDeaths(JobContext& context, StepDriver& steps, int num_servers)
      : context_(context),
        steps_(steps),
        burials_(num_servers, context.job.elastic_workers
                                  ? RunSettings::kMaxWorkers
                                  : context.job.total_num_replicas),
        workers_left_(context.settings) {}

  // Deals with all that are dead or have left. A failure is the job's:
  //
  //   kResourceExhausted  a table is full
  //   kAborted            too few workers are left that can take part
  absl::Status BuryAll();
  // The same while servers are not together: workers have to wait, unless
  // servers have no values yet. Errors as BuryAll().
  absl::Status BuryBeforeRound();
  // A round has found the servers, and whether they are without values. If it
  // does not end well, a worker that has died, as the one that gives the first
  // values may, holds nothing.
  void FoundServers(bool without_values) { without_values_ = without_values; }

  // kAborted: there is a newer chief. `in_step`: a step is being made.
  absl::Status OnExpireAnswered(const ExpireAnswered& event, bool in_step);

  // A round of the servers begins: burials that were under way are void.
  void Forget() { burials_.Forget(); }

  // Whether a server has died since this was asked last.
  bool TakeServerAway() { return std::exchange(server_away_, false); }
  bool server_away() const { return server_away_; }

  bool InputEnded() const { return workers_left_.InputEnded(context_.members); }
  // A worker has used up its data, as a chief before has left it.
  void EndedInput(int worker) { workers_left_.EndedInput(worker); }
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
