#ifndef LOCKSTEP_SERVER_SHARD_CHIEF_COMMANDS_H_
#define LOCKSTEP_SERVER_SHARD_CHIEF_COMMANDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/plan/step_vocabulary.h"
#include "server/shard/shard_host.h"

namespace lockstep {

// ChiefCommands is what a chief may do to a server's shard, and what follows
// from that on the server: on ps task 0 gate and values move together,
// elsewhere the values follow what ps task 0 said.
//
// Threads: safe to share; no call waits. What a call made ready is returned, to
//          be sent once no lock is held.
// Borrows: the host.
// Errors:  a call that fails has changed nothing. All calls for a chief have
//            kUnavailable         no job or no shard yet
//            kFailedPrecondition  another job
//            kAborted             there is a newer chief
class ChiefCommands {
 public:
  // Who asks.
  struct Chief {
    std::string job_id;
    uint64_t epoch = 0;
    uint64_t incarnation = 0;
  };

  // What there is to be sent, to workers and to the chief.
  struct Ready {
    ShardAnswers answers;
    std::vector<Gate::Answer> tokens;
    // A step that was committed here without the chief, which the takes tell;
    // 0: none.
    int64_t committed_step = 0;
  };

  explicit ChiefCommands(ShardHost& host) : host_(host) {}

  absl::StatusOr<std::shared_ptr<Shard>> CheckedShard(const Chief& chief);

  // As ShardHost::TakeEpoch(). From then on nothing is committed that an older
  // chief has asked for or granted.
  absl::StatusOr<uint64_t> TakeEpoch(const std::string& job_id,
                                     uint64_t newer_than, uint64_t chief = 0)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // As Shard::Activate(). Expired workers (with their incarnations) are not
  // admitted any more, those with incarnation 0 as in ShardHost::ShutOut().
  absl::StatusOr<Ready> Activate(const Chief& chief, const Opening& opening)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Files the chief's wait for all parts of the step after `step`, of which
  // `attempt` has begun (0: nothing new). Steps up to `commit_until` may be
  // committed without the chief; if `step` is over by that, the wait is ready.
  // A wait that Engine::Take() refuses is answered with why.
  absl::StatusOr<Ready> Take(const Chief& chief, uint64_t ticket, int64_t step,
                             int64_t commit_until, int64_t attempt)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Commits a prepared step; on ps task 0 that is the job's commit. What other
  // servers have prepared has come of gradients of `contributors`, one set of
  // workers for each server that says so. If one of them is not the step's set,
  // the step begins anew on ps task 0 instead, with a newer attempt.
  //
  //   kFailedPrecondition  not prepared for it, or its set was given up
  struct Committed {
    std::vector<int> members;  // of the step, on ps task 0
    int64_t global_step = 0;
    int64_t redone_attempt =
        0;  // not committed: the step's attempt from now on
    Ready ready;
  };
  absl::StatusOr<Committed> Commit(
      const Chief& chief, int64_t step, int64_t attempt,
      const std::vector<std::vector<int>>& contributors = {})
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Takes a dead worker out. `step` and `attempt` are what ps task 0 answered;
  // it decides them itself, and the incarnation where that is 0.
  struct Expired : ExpiredWorker {
    Ready ready;
  };
  absl::StatusOr<Expired> ExpireWorker(const Chief& chief, int worker,
                                       uint64_t incarnation, int64_t step,
                                       int64_t attempt)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Has a member that holds up `attempt` of the step after `step` replaced, on
  // ps task 0; elsewhere begins the attempt that came of it.
  struct Replaced : ReplacedMember {
    Ready ready;
  };
  absl::StatusOr<Replaced> ReplaceMember(const Chief& chief, int worker,
                                         int64_t step, int64_t attempt)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

  // Commits what the answers say is prepared, if the chief has granted that.
  Ready Settle(Shard& shard, ShardAnswers answers)
      ABSL_LOCKS_EXCLUDED(epoch_mutex_);

 private:
  absl::StatusOr<std::vector<Gate::Answer>> CommitStep(Shard& shard,
                                                       int64_t step,
                                                       int64_t attempt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(epoch_mutex_);

  ShardHost& host_;
  // A step is committed, or a chief's word comes to nothing because a newer one
  // has drawn its epoch: one before the other.
  Mutex epoch_mutex_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SHARD_CHIEF_COMMANDS_H_
