#ifndef LOCKSTEP_CHIEF_RECOVERY_RECOVERY_ROUND_H_
#define LOCKSTEP_CHIEF_RECOVERY_RECOVERY_ROUND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/members/membership_table.h"
#include "chief/recovery/recovery_plan.h"
#include "chief/recovery/shard_group.h"
#include "common/base/clock.h"
#include "common/job/job_config.h"
#include "common/plan/plan.h"

namespace lockstep::chief {

// What a round needs beside the servers.
class RecoverySource {
 public:
  virtual ~RecoverySource() = default;

  // Of the newest complete checkpoint; -1: there is none. Quick.
  virtual absl::StatusOr<int64_t> LatestStep() const = 0;
  // Of the newest one whose contents are whole; -1: there is none. Asked where
  // the servers would leave what they have for a checkpoint, and before they
  // do: an error leaves them as they are.
  virtual absl::StatusOr<int64_t> WholeStep() { return LatestStep(); }

  // What servers have counts for nothing in the first round.
  virtual bool BeginsAnew() const { return false; }

  // Writes the checkpoint of WholeStep() to the servers. Empty: there is none.
  struct Restored {
    int64_t step = 0;
    std::vector<float> scalars;  // of the optimizer
  };
  virtual absl::StatusOr<std::optional<Restored>> Restore(
      const StateMap& map) = 0;

  // What servers have, in a chief's first round.
  virtual void OnFound(absl::Span<const ServerReport> /*reports*/) {}
  // Workers that have used up their data.
  virtual std::vector<int> EndedInput() const { return {}; }

  // The servers are about to go on from what they have. Whether they would sum
  // the step at hand otherwise than this chief wants it, so that it has to
  // begin anew.
  virtual bool OnResume(absl::Span<const ServerReport> /*reports*/,
                        bool /*first*/) {
    return false;
  }

  // How the job runs once the servers are open.
  virtual RunSettings settings() const { return {}; }

  // Servers are at work on their variables: who, and how far, e.g. "ps 1 to
  // create its variables, 40 %". Anything but kOk ends the round.
  virtual absl::Status OnWorking(const std::string& /*what*/) {
    return absl::OkStatus();
  }
  // The round has its epoch.
  virtual void OnEpoch(uint64_t epoch) = 0;
  // All servers are about to start from plan.step, so that no later step counts
  // as seen, even if this round fails. Where they leave state for it (kGoBack)
  // and it is a chief's first round, this waits until members of the chief
  // before have had time to register.
  virtual void OnStartFrom(const RecoveryPlan& plan, bool first) = 0;
};

// RecoveryRound brings all servers to one committed step and opens them: it
// draws an epoch, asks them what they have, and does what MakeRecoveryPlan()
// says. A round that fails may be repeated as a whole.
//
// Threads: belongs to the chief's loop.
// Borrows: all that it is made of.
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
    StateMap map;
    int64_t step = 0;  // at which the servers are open
    // Of the newest checkpoint that fits, where the round has looked; -1: none.
    int64_t checkpoint_step = -1;
  };
  // `step`: the last one that this chief has seen committed. Nothing in its
  // first round, which takes over what a chief before it has left.
  //
  //   kUnavailable, kDeadlineExceeded  a server is away, again, or hangs; one
  //                                    that comes further with its variables
  //                                    is waited for however long it takes
  //   kAborted                         there is a newer chief
  absl::StatusOr<Outcome> Run(const Plan& plan, std::optional<int64_t> step);

 private:
  absl::StatusOr<ShardGroup::Found> Create(const Plan& plan,
                                           ShardCalls::State state);
  absl::Status Resume(Outcome& outcome, bool first);
  absl::Status StartFrom(Outcome& outcome, bool first);
  absl::Status Open(ShardCalls::Opening opening);
  // Older incarnations of workers that registered before the servers were open.
  absl::Status ExpirePredecessors();

  const JobConfig& job_;
  ShardGroup& servers_;
  MembershipTable& members_;
  RecoverySource& source_;
  const Clock& clock_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_RECOVERY_RECOVERY_ROUND_H_
