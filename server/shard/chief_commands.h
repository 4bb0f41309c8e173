#ifndef LOCKSTEP_SERVER_SHARD_CHIEF_COMMANDS_H_
#define LOCKSTEP_SERVER_SHARD_CHIEF_COMMANDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/plan/step_vocabulary.h"
#include "server/shard/shard_host.h"

namespace lockstep::server {

// ChiefCommands carries out the chief's commands to a server's shard. On ps
// task 0 it moves the gate and the values together; on other servers the values
// follow the decisions of ps task 0.
//
// Threads: safe to share; no call waits. The caller must send the answers that
//          a call returns, with no lock held.
// Borrows: the host.
// Errors:  a call that fails has changed nothing. All calls for a chief have
//            kUnavailable         no job or no shard yet
//            kFailedPrecondition  another job
//            kAborted             there is a newer chief
class ChiefCommands {
 public:
  // The caller of a command.
  struct Chief {
    std::string job_id;
    uint64_t epoch = 0;
    uint64_t incarnation = 0;
  };

  // The answers to be sent, to workers and to the chief.
  struct Ready {
    ShardAnswers answers;
    std::vector<Gate::Answer> tokens;
    // The step that was committed here under the chief's grant; the answers to
    // the chief's waits report it. 0: none.
    int64_t committed_step = 0;
  };

  explicit ChiefCommands(ShardHost& host) : host_(host) {}

  // Returns the shard if `chief` is the chief that the server follows.
  absl::StatusOr<std::shared_ptr<Shard>> CheckedShard(const Chief& chief);

  // As ShardHost::TakeEpoch(). Once it has returned, no Activate(),
  // ExpireWorker(), ReplaceMember() or CloseTokens() of an older chief takes
  // effect, and no commit that it has ordered or granted can happen.
  absl::StatusOr<uint64_t> TakeEpoch(const std::string& job_id,
                                     uint64_t newer_than, uint64_t chief = 0)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // As Shard::Activate(). Refuses `opening.expired` from now on, as
  // ShardHost::ExpireWorker(), and keeps `opening.workers`.
  absl::StatusOr<Ready> Activate(const Chief& chief, const Opening& opening)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Files the chief's wait for all parts of the step after `step`, and begins
  // `attempt` of it (0: no new one). Grants commits of the steps up to
  // `commit_until`; if that ends `step` itself, the wait is answered at once. A
  // wait that Engine::Take() refuses is answered with its error. `norm`, if it
  // is known, is applied first: see Engine::ApplyNorm().
  //
  //   kInvalidArgument  a norm below 0
  struct TakeOrder {
    int64_t step = 0;
    int64_t commit_until = 0;
    int64_t attempt = 0;
    std::optional<MeanNorm> norm = {};
  };
  absl::StatusOr<Ready> Take(const Chief& chief, uint64_t ticket,
                             const TakeOrder& order)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Withdraws the chief's grant, and returns the shard. From then on only an
  // order of a chief commits a step: pushes do not, not even those under way.
  absl::StatusOr<std::shared_ptr<Shard>> WithdrawGrant(const Chief& chief)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Commits a prepared step; on ps task 0 this is the commit of the job.
  // `contributors` are the workers whose gradients each other server has
  // summed. If one of these sets is not that of the step, ps task 0 restarts
  // the step with a newer attempt instead of committing it.
  //
  //   kFailedPrecondition  not prepared for the step, or its set was given up
  struct Committed {
    std::vector<int> members;  // of the step, on ps task 0
    int64_t global_step = 0;
    int64_t redone_attempt = 0;  // 0: committed; else that of the restart
    Ready ready;
  };
  absl::StatusOr<Committed> Commit(
      const Chief& chief, int64_t step, int64_t attempt,
      const std::vector<std::vector<int>>& contributors = {})
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Removes a dead worker from the step. On ps task 0 the gate decides `step`
  // and `attempt`, and `incarnation` if that is 0; on other servers they must
  // be the answer of ps task 0. `input_ended`: the worker has used up its data.
  struct Expired : ExpiredWorker {
    Ready ready;
  };
  absl::StatusOr<Expired> ExpireWorker(const Chief& chief, int worker,
                                       uint64_t incarnation, int64_t step,
                                       int64_t attempt,
                                       bool input_ended = false)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // On ps task 0: replaces a member that holds up `attempt` of the step after
  // `step`. On other servers: begins `attempt`, which ps task 0 has answered.
  struct Replaced : ReplacedMember {
    Ready ready;
  };
  absl::StatusOr<Replaced> ReplaceMember(const Chief& chief, int worker,
                                         int64_t step, int64_t attempt)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Closes the token queue of ps task 0, and returns the answers to those that
  // wait for a token.
  //
  //   kFailedPrecondition  this server has no token queue
  absl::StatusOr<std::vector<Gate::Answer>> CloseTokens(const Chief& chief)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Must be called with the answers of every call of the engine before they are
  // sent: commits the step that they have prepared, if the chief has granted
  // that commit.
  Ready Settle(Shard& shard, ShardAnswers answers)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

 private:
  absl::StatusOr<std::vector<Gate::Answer>> CommitStep(Shard& shard,
                                                       int64_t step,
                                                       int64_t attempt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(epoch_mutex_);

  Ready SettleLocked(Shard& shard, ShardAnswers answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(epoch_mutex_);

  ShardHost& host_;
  // Orders commits, the commands that TakeEpoch() names and new epochs: a step
  // is committed, and such a command carried out, either before a newer chief
  // has its epoch or not at all.
  Mutex epoch_mutex_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_CHIEF_COMMANDS_H_
