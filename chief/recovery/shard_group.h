#ifndef LOCKSTEP_CHIEF_RECOVERY_SHARD_GROUP_H_
#define LOCKSTEP_CHIEF_RECOVERY_SHARD_GROUP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_transfer.h"
#include "chief/recovery/recovery_plan.h"
#include "chief/servers/shard_calls.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job_config.h"
#include "common/plan/plan.h"
#include "common/process/process.h"

namespace lockstep::chief {

// ShardGroup makes the calls that go to all servers that take part in a job:
// create, restore, open, copy aside. Their order is part of the protocol: ps
// task 0 is opened last, and decides first. All other servers are called
// together.
//
// Threads: safe to share, except Add(), Use() and TakeEpoch(), which must not
//          run together with other calls.
// Borrows: the servers.
// Errors:  those of ShardCalls, with the server named in front.
class ShardGroup {
 public:
  // Errors by server.
  using Failures = std::map<int, absl::Status>;

  // Returns an incarnation above `above`, different from any that another
  // process draws.
  using Draw = std::function<uint64_t(uint64_t above)>;

  explicit ShardGroup(Draw draw = DrawIncarnation) : draw_(std::move(draw)) {}
  virtual ~ShardGroup() = default;
  ShardGroup(const ShardGroup&) = delete;
  ShardGroup& operator=(const ShardGroup&) = delete;

  // Adds the server of the next ps task, from 0 on. It takes part.
  void Add(ShardCalls& server) {
    used_.push_back(size());
    servers_.push_back(&server);
  }

  // Makes these servers, ascending, with ps task 0, those that take part.
  void Use(const std::vector<int>& servers) { used_ = servers; }
  const std::vector<int>& used() const { return used_; }

  // All servers, whether they take part or not.
  int size() const { return static_cast<int>(servers_.size()); }

  // Draws an epoch from all servers, ps task 0 last. From then on servers
  // refuse any earlier chief, and earlier calls of this one.
  //
  // A chief that has just started takes the servers even from a chief whose
  // incarnation is newer (because its clock was ahead), by drawing a still
  // newer one. A chief that has had an epoch returns kAborted instead.
  //
  // With `failed`, servers other than ps task 0 may fail: then they are used no
  // more, until Use(), and `failed` has the reasons, by server.
  //
  //   kAborted  there is a newer chief
  absl::StatusOr<uint64_t> TakeEpoch(Failures* failed = nullptr);
  // The epoch that was drawn last.
  uint64_t epoch() const { return epoch_; }

  // The state of the servers, by index; those that take no part have a report
  // that says so.
  struct Found {
    StateMap map;
    std::vector<ServerReport> reports;  // by server
  };
  // Called with the progress of a server; any status but kOk ends the wait.
  using OnWorking =
      std::function<absl::Status(int server, const ShardCalls::Working&)>;
  // Finds the state of each server, or creates its parts with their initial
  // values; with kDiscard, creates them in any case. Servers do long work in
  // parallel. With `failed`, servers other than ps task 0 may fail: then they
  // have no part in the result, and `failed` has the reasons.
  //
  //   kAborted  also with `failed`: there is a newer chief
  absl::StatusOr<Found> Create(const JobConfig& job, const Plan& plan,
                               ShardCalls::State state,
                               const OnWorking& on_working,
                               Failures* failed = nullptr);

  // As RestoreCheckpoint(). The servers must not be open.
  absl::StatusOr<std::vector<float>> Restore(
      const CheckpointReader& checkpoint, const StateMap& map,
      const OnTransferred& on_transferred = {});

  // For mirrors: opens `donor`, and copies its state, with the step in
  // `opening`, to the servers `to`, whose own state is discarded. Those are not
  // opened. Adds the scalars to `opening`. The copy ends with the first error,
  // also of `on_working` and `on_transferred`, and the donor's snapshot with
  // it; with `failed`, that has the error if it is of one of `to` alone, other
  // than server 0.
  absl::Status CopyState(const JobConfig& job, const StateMap& map, int donor,
                         const std::vector<int>& to,
                         const OnWorking& on_working,
                         const OnTransferred& on_transferred,
                         ShardCalls::Opening& opening,
                         Failures* failed = nullptr);

  // Writes the values of the job's checkpoint.initial_values. Returns
  // InitialValuesText() of the file.
  //
  //   kFailedPrecondition  the file has no variable of the job, or NaN or an
  //                        infinity in one that is updated
  //   kCancelled           `on_transferred` has ended it
  //   others               as chief::WriteInitialValues(), or of the file
  absl::StatusOr<std::string> WriteInitialValuesOf(
      const JobConfig& job, const StateMap& map,
      const OnTransferred& on_transferred);
  // As chief::WriteInitialValues().
  absl::StatusOr<int> WriteInitialValues(
      const SafetensorsReader& values, const StateMap& map,
      const OnTransferred& on_transferred = {});

  // Opens the servers, ps task 0 last: it gives no token before all are open.
  absl::Status Activate(const ShardCalls::Opening& opening);

  // Copies the state of `step` aside on all servers. ps task 0 must have
  // committed that step, with `attempt`. A failure releases the copies that
  // servers have made.
  absl::StatusOr<JobSnapshot> BeginSnapshot(int64_t step, int64_t attempt);
  // Releases the copies.
  void EndSnapshot();

  // Takes a dead worker out of the current step on all servers. Returns the
  // answer of ps task 0. Incarnation 0: as in ExpireWorkerRequest.
  absl::StatusOr<ShardCalls::Expired> ExpireWorker(int worker,
                                                   uint64_t incarnation,
                                                   const std::string& reason);

  // By server; null for those that take no part.
  std::vector<ShardAccess*> Access();

 protected:
  // The failure of a server, with its name in front, once.
  static absl::Status Named(int server, const absl::Status& status);

  using AskOne = absl::FunctionRef<absl::Status(int server)>;

  // Calls `servers`. Returns the first failure in their order, with the server
  // named in front. This implementation calls one after the other, up to a
  // failure.
  virtual absl::Status AskThese(const std::vector<int>& servers, AskOne ask);

  // As chief::CopyState().
  virtual absl::Status Transfer(const StateMap& map, ShardCalls& from,
                                const std::vector<ShardCalls*>& to,
                                const OnTransferred& on_transferred);

 private:
  // Calls the servers that take part, from index `first` on.
  absl::Status AskFrom(int first, AskOne ask);
  absl::StatusOr<uint64_t> DrawEpoch(Failures* failed);
  // The part of CopyState() that follows the snapshot of `from`.
  absl::Status Fill(const JobConfig& job, const StateMap& map, ShardCalls& from,
                    const std::vector<int>& to, const OnWorking& on_working,
                    const OnTransferred& on_transferred, Failures* failed);
  // As BeginSnapshot(), except that a failure leaves `copies`, by server.
  absl::StatusOr<JobSnapshot> CopyAside(
      int64_t step, int64_t attempt,
      std::vector<std::optional<ShardSnapshot>>& copies);

  const Draw draw_;
  std::vector<ShardCalls*> servers_;
  std::vector<int> used_;  // those that take part, ascending
  uint64_t epoch_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_RECOVERY_SHARD_GROUP_H_
