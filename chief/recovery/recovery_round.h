#ifndef LOCKSTEP_CHIEF_RECOVERY_RECOVERY_ROUND_H_
#define LOCKSTEP_CHIEF_RECOVERY_RECOVERY_ROUND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/members/membership_table.h"
#include "chief/recovery/recovery_plan.h"
#include "chief/recovery/shard_group.h"
#include "common/base/clock.h"
#include "common/job/job_config.h"
#include "common/plan/plan.h"

namespace lockstep::chief {

// RecoverySource is a round's access to checkpoints, and to the decisions of
// the job's driver.
//
// Threads: called in the thread of RecoveryRound::Run().
class RecoverySource {
 public:
  virtual ~RecoverySource() = default;

  // The step of the newest complete checkpoint; -1: there is none. Reads no
  // contents. An error counts as none, unless servers must discard their state:
  // then the error of WholeStep() counts. In a chief's first round
  // kFailedPrecondition, a checkpoint of a newer format, ends the round.
  virtual absl::StatusOr<int64_t> LatestStep() const = 0;
  // The step of the newest checkpoint whose contents are whole; -1: there is
  // none. Called before servers discard their state for a checkpoint: an error
  // ends the round while they still have that state.
  virtual absl::StatusOr<int64_t> WholeStep() { return LatestStep(); }

  // True if the first round must discard the servers' state.
  virtual bool BeginsAnew() const { return false; }

  // Writes the checkpoint of WholeStep() to the servers. Returns nullopt if
  // there is none: the servers have initial values then. An error ends the
  // round.
  struct Restored {
    int64_t step = 0;
    std::vector<float> scalars;  // of the optimizer
  };
  virtual absl::StatusOr<std::optional<Restored>> Restore(
      const StateMap& map) = 0;

  // Called in a chief's first round, with the servers' reports, unless the
  // round begins anew.
  virtual void OnFound(absl::Span<const ServerReport> /*reports*/) {}
  // The servers that must take part, ascending, with ps 0. Called in a chief's
  // first round, after OnFound(): those that the round was given may be more
  // than the job needs, or too few.
  virtual std::vector<int> Servers() const = 0;
  // Called if no mirror that takes part has the state of the last opening, but
  // others had it. The round then fails.
  virtual void OnStateElsewhere() {}
  // Elastic mirrors: called if the job goes on without a mirror that could not
  // open its state. `why` names it.
  virtual void OnLeftOut(int /*server*/, const absl::Status& /*why*/) {}
  // Returns the workers that have used up their data.
  virtual std::vector<int> EndedInput() const { return {}; }

  // Called before servers continue from their state. Returns true if the
  // current step must begin anew, because servers would sum it under other
  // settings than this chief's.
  virtual bool OnResume(absl::Span<const ServerReport> /*reports*/,
                        bool /*first*/) {
    return false;
  }

  // The settings of the job once the servers are open.
  virtual RunSettings settings() const { return {}; }

  // Called while servers create their variables, or take the state of another.
  // `what` names the server and its progress, e.g. "ps 1 to create its
  // variables, 40 %". An error ends the round: at once if servers have
  // discarded their state, and otherwise when the job's lease has passed since
  // the first error.
  virtual absl::Status OnWorking(const std::string& /*what*/) {
    return absl::OkStatus();
  }
  // Called with the round's epoch once it is drawn.
  virtual void OnEpoch(uint64_t epoch) = 0;
  // Called before all servers start from plan.step: from then on no later step
  // counts as seen, even if this round fails. In a chief's first round with
  // kGoBack the implementation must block until members of the previous chief
  // have had time to register. An error, as a stop, ends the round: nothing is
  // discarded yet.
  virtual absl::Status OnStartFrom(const RecoveryPlan& plan, bool first) = 0;
};

// RecoveryRound brings all servers to one committed step and opens them: it
// draws an epoch, asks each server for its state, and carries out the plan of
// MakeRecoveryPlan(). A round that fails may be repeated as a whole, by the
// same object.
//
// Threads: belongs to the chief's loop.
// Borrows: all constructor arguments.
class RecoveryRound {
 public:
  RecoveryRound(const JobConfig& job, ShardGroup& servers,
                MembershipTable& members, RecoverySource& source,
                const Clock& clock)
      : job_(job),
        servers_(servers),
        members_(members),
        source_(source),
        clock_(clock) {}

  struct Outcome {
    RecoveryPlan plan;
    StateMap map;              // its parts are summed by `servers`
    std::vector<int> servers;  // that are open, ascending
    int64_t step = 0;          // at which the servers are open
    // The step of the newest checkpoint that fits, if the round looked for one;
    // -1: none.
    int64_t checkpoint_step = -1;
  };
  struct Request {
    // The last step that this chief has seen committed; empty in its first
    // round, which takes over the servers from the previous chief.
    std::optional<int64_t> step = {};
    std::vector<int> servers = {};  // ascending, with ps 0
    // Servers that take no part were open when the job went on last.
    bool others_have_state = false;
    // The epoch in which that was; 0 in a chief's first round. A mirror whose
    // state was opened in it, or later, knows of all steps since.
    uint64_t opened_epoch = 0;
  };
  // Runs one round. `plan` must be that of all servers of the cluster.
  //
  //   kUnavailable, kDeadlineExceeded  a server is away or hangs. The round
  //                                    waits for a server whose variables make
  //                                    progress, however long that takes. Or,
  //                                    after the first round, the checkpoints
  //                                    cannot be read. Or the state is
  //                                    elsewhere: see OnStateElsewhere(). Or a
  //                                    mirror was left out: see OnLeftOut()
  //   kAborted                         there is a newer chief
  absl::StatusOr<Outcome> Run(const Plan& plan, const Request& request);

 private:
  // Creates the state of the servers that take part, or finds it. In a chief's
  // first round, leaves out servers that the job does not need. In an elastic
  // job of mirrors, leaves out mirrors that fail, and those that have `failed`.
  absl::StatusOr<ShardGroup::Found> Create(const Plan& plan,
                                           const Request& request, bool anew,
                                           ShardGroup::Failures failed);
  // True if the job can go on without a mirror that fails; a job that begins
  // anew needs all.
  bool MayLeaveOut(bool anew) const {
    return job_.has_elastic_mirrors() && !anew;
  }
  // Leaves out these mirrors.
  //
  //   kUnavailable  there is one: the next round begins without it
  absl::Status LeaveOut(const ShardGroup::Failures& failed);
  // Reads the checkpoint that counts, and decides. `decide` fills in the plan
  // of the outcome.
  absl::Status Decide(absl::FunctionRef<void(int64_t checkpoint_step)> decide,
                      bool first, const Outcome& outcome);
  // Reports the work of servers that create their variables, and ends the wait
  // for one that makes no progress. `keeps`: as in Report().
  ShardGroup::OnWorking WatchWork(bool keeps);
  // As RecoverySource::OnWorking(). `keeps`: the servers keep their state,
  // which a job that stops must write to its last checkpoint.
  absl::Status Report(const std::string& what, bool keeps);
  absl::Status Resume(Outcome& outcome, bool first);
  absl::Status StartFrom(Outcome& outcome, bool first);
  void ExpireWorkers(bool have_worked, int64_t step);
  absl::Status Open(ShardCalls::Opening opening);
  // Fills in the workers and the settings of `opening`.
  void Complete(ShardCalls::Opening& opening);
  // The status of a call that a killed server may have refused.
  static absl::Status AgainIfKilled(const absl::Status& status);
  // Expires older incarnations of the workers that have registered already.
  absl::Status ExpirePredecessors();

  const JobConfig& job_;
  ShardGroup& servers_;
  MembershipTable& members_;
  RecoverySource& source_;
  const Clock& clock_;
  // Workers were expired for a start from a step, and no server has been open
  // since.
  bool workers_expired_ = false;
  bool begins_attempt_ = false;  // those workers had been at work
  // When a wait for state that servers keep was first asked to end.
  absl::Time asked_to_end_ = absl::InfiniteFuture();
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_RECOVERY_RECOVERY_ROUND_H_
