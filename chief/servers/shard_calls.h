#ifndef LOCKSTEP_CHIEF_SERVERS_SHARD_CALLS_H_
#define LOCKSTEP_CHIEF_SERVERS_SHARD_CALLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/servers/server_report.h"
#include "chief/servers/shard_access.h"
#include "common/job/job_config.h"
#include "common/plan/plan.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::chief {

// ShardCalls are the calls to one server for which the chief blocks: setup,
// recovery, deaths, copies. Every call may be repeated.
//
// Threads: safe to share, except set_epoch() and set_incarnation(), which must
//          not run together with other calls.
// Errors: those of ShardControlService, and kDeadlineExceeded.
class ShardCalls : public ShardAccess {
 public:
  // The progress of a call that takes long. The caller must repeat the call,
  // which returns later progress. A server without progress for
  // kLongestStandstill hangs.
  static constexpr absl::Duration kLongestStandstill = absl::Minutes(1);
  struct Working {
    int64_t done_bytes = 0;
    int64_t total_bytes = 0;  // 0: not known yet
  };
  // The state of a shard beside the variables.
  struct Created {
    std::optional<Working> working{};  // set: the shard does not exist yet
    // By variable, the names of the tensors that are kept beside it, such as
    // "Momentum".
    std::vector<std::vector<std::string>> slots{};
    std::vector<std::string> scalars{};  // names, of the optimizers
    ServerReport report{};
  };
  using Opening = lockstep::Opening;
  using Expired = ExpiredWorker;
  using Replaced = ReplacedMember;
  // kKeep: the server continues from its state, if it has any.
  enum class State { kKeep, kDiscard };

  // Returns an epoch above `newer_than` and above any that the server knows.
  //
  //   kAborted  another chief has a newer incarnation, which
  //             NewestIncarnationOf() returns for the status
  virtual absl::StatusOr<uint64_t> TakeEpoch(uint64_t newer_than) = 0;
  // Sets the chief's incarnation for all later calls. Must not be called while
  // ShardAccess is in use.
  virtual void set_incarnation(uint64_t incarnation) = 0;
  // Sets the epoch of all later calls; must not be called while ShardAccess is
  // in use.
  virtual void set_epoch(uint64_t epoch) = 0;

  // Creates the shard of ps task `server`, its index in `plan`. If that takes
  // longer than a moment, the result has the progress, and the caller must
  // repeat the call.
  virtual absl::StatusOr<Created> CreateShard(const JobConfig& job,
                                              const Plan& plan, int server,
                                              State state) = 0;
  // Opens the shard for workers at opening.global_step.
  virtual absl::Status Activate(const Opening& opening) = 0;
  // Makes `step`, which `attempt` has prepared, the committed one. Returns when
  // the server has answered.
  virtual absl::Status CommitAndWait(int64_t step, int64_t attempt) = 0;

  // Removes a dead worker from the step. `step` and `attempt` must be those
  // that ps task 0 answered, and 0 in the call to ps task 0. `incarnation` must
  // be 0 for a worker whose last one is not known.
  virtual absl::StatusOr<Expired> ExpireWorker(int worker, uint64_t incarnation,
                                               const std::string& reason,
                                               int64_t step,
                                               int64_t attempt) = 0;

  // Copies the committed `step` aside in the server's memory, for
  // ReadSnapshot() and ReadKeys(). The copy replaces the one before it.
  virtual absl::StatusOr<ShardSnapshot> BeginSnapshot(int64_t step) = 0;
  // Releases the copy.
  virtual absl::Status EndSnapshot() = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_SHARD_CALLS_H_
