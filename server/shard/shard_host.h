#ifndef LOCKSTEP_SERVER_SHARD_SHARD_HOST_H_
#define LOCKSTEP_SERVER_SHARD_SHARD_HOST_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/event_queue.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "server/shard/epoch_fence.h"
#include "server/shard/shard.h"
#include "server/shard/shard_factory.h"
#include "server/state/file/worker_fences.h"

namespace lockstep {

// ShardHost is what a ps process is before and while it has a shard: it knows
// the job that it belongs to, the newest chief, and which incarnations of the
// workers may still speak.
//
// Threads: safe to share. A shard that was handed out lives as long as its
//          holder needs it.
class ShardHost {
 public:
  struct Options {
    int task_index = 0;
    uint64_t incarnation = 0;
    std::string state_dir;
    bool shared_memory = true;             // with workers of this host
    TaskId chief = {TaskType::kChief, 0};  // or the worker that hosts it
  };

  explicit ShardHost(const Options& options) : options_(options) {}

  int task_index() const { return options_.task_index; }

  // Parts whose readers are done. Whoever takes one out must pass it to
  // Engine::PartReturned() of the shard at hand, in a thread that may
  // update a part; gRPC's threads must not.
  EventQueue<int>& returned_parts() { return *returned_parts_; }

  // Whether this is the server that a peer means. Where parts are laid out
  // alike on two servers, nothing else would tell.
  //
  //   kInvalidArgument  it is not; says what to change
  absl::Status CheckMeant(int server) const;

  // Whether a sender is the task that steers servers.
  //
  //   kPermissionDenied  it is another one
  absl::Status CheckIsChief(const TaskId& sender) const;

  // The job that the chief gave at registration. Empty until then: nobody is
  // served. Finds out which chief was obeyed last, if an earlier process of
  // this task has left its state.
  void SetJobId(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // A new epoch, larger than any before and than `newer_than`, for the chief
  // of this incarnation. One that it has taken already is answered again: the
  // answer was lost, or the request was delayed.
  //
  //   kUnavailable         no job yet; so do the calls below
  //   kInvalidArgument     no server has answered `newer_than`: it is too far
  //                        ahead of this server's epoch
  //   kFailedPrecondition  another job, or a state file with an epoch that
  //                        nothing can follow
  //   kAborted             a chief that started later has taken one: this one
  //                        hung meanwhile, and what it knows is out of date
  absl::StatusOr<uint64_t> TakeEpoch(const std::string& job_id,
                                     uint64_t newer_than = 0,
                                     uint64_t chief = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on nobody is admitted: all is refused with `why`. A call that was
  // admitted before has filed itself already where it waits.
  void Close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits a chief that takes the server over, with a call that comes before
  // all others of its epoch, and holds to this epoch from now on. Errors as
  // CheckChief(), which admits newer epochs never; and kInvalidArgument, for an
  // epoch too far ahead, as in TakeEpoch().
  absl::Status FollowChief(const std::string& job_id, uint64_t epoch,
                           uint64_t chief = 0) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it would. Changes nothing: what else there is in the call is to be
  // looked at before the chief is followed.
  absl::Status CheckMayFollow(const std::string& job_id, uint64_t epoch,
                              uint64_t chief = 0) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits a chief that this server follows.
  //
  //   kUnavailable         a newer epoch: the server has lost its state since,
  //                        and may be another chief's by now; or it was
  //                        restarted in this epoch, and two chiefs may have
  //                        drawn the same number, each on another server
  //   kFailedPrecondition  another job
  //   kAborted             an older epoch, or one of another chief: servers
  //                        that lost their state count from 1 again
  absl::Status CheckChief(const std::string& job_id, uint64_t epoch,
                          uint64_t chief = 0) ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits a worker, or whoever reads, and returns the open shard.
  //
  //   kUnavailable         no shard, or one that the chief has not opened yet
  //   kFailedPrecondition  another job, or an incarnation that has been expired
  //                        or shut out
  absl::StatusOr<std::shared_ptr<Shard>> Admit(const std::string& job_id,
                                               const TaskId& task,
                                               uint64_t incarnation) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a shard can be made of this, where there is room for it.
  //
  //   kInvalidArgument  it cannot; says why
  static absl::Status CheckDescription(
      const JobConfig& job, const std::vector<VariableSpec>& variables,
      const std::vector<PartSpec>& parts);

  using Keep = lockstep::Keep;
  // Makes the shard, or finds it. State that cannot be read counts as none.
  //
  //   kFailedPrecondition  what is there is of another job, layout or version
  //   kUnavailable         it has obeyed a chief of a newer epoch, or another
  //                        process uses it
  //   and the errors of Shard::Create(): with kNothing there is no shard then
  // That may take minutes. Meanwhile all other calls are served as by a server
  // without a shard; one of these waits for the end of the one before.
  absl::StatusOr<std::shared_ptr<Shard>> Create(
      const JobConfig& job, const std::vector<VariableSpec>& variables,
      const std::vector<PartSpec>& parts, Keep keep = Keep::kState)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // How far Create() is, or how far the last one went; null before the first.
  std::shared_ptr<const FillProgress> fill_progress() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends Create(), those to come too, with kCancelled: the process ends.
  void StopCreating() ABSL_LOCKS_EXCLUDED(mutex_);

  //   kUnavailable  not created yet
  absl::StatusOr<std::shared_ptr<Shard>> shard() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the locks that calls need, one after the other, and lets go of them:
  // returns only where none is held for ever.
  void TouchLocks() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on nothing of these incarnations is admitted, here or by a later
  // process that finds the state. Memory that they share is let go.
  void ExpireWorker(int worker, uint64_t incarnation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on nothing of these workers is admitted, whatever incarnation,
  // until ExpireWorker() names one. Counts once an epoch, so that a call that
  // was delayed does no harm.
  void ShutOut(const std::vector<int>& workers) ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes the state file, if there is one, be it an earlier process's. A
  // shard that is being made is not wanted any more.
  absl::Status RemoveState() ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

 private:
  // Makes `epoch` outlive this process, where there is state of the job.
  absl::Status KeepEpoch(uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes it the one that is followed, once it is kept.
  absl::Status SetEpoch(uint64_t epoch, uint64_t chief)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StateHeader FileHeader() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ShardState::Options StateOptions(const JobConfig& job,
                                   const std::vector<VariableSpec>& variables,
                                   const std::vector<PartSpec>& parts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns what there is already; null: it has to be opened or made. What is
  // discarded is left to the caller, since it takes long to let go of it.
  absl::StatusOr<std::shared_ptr<Shard>> FindShard(
      const ShardState::Options& options, Keep keep,
      std::shared_ptr<Shard>& discarded) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes what Create() has opened or made the shard.
  absl::StatusOr<std::shared_ptr<Shard>> Install(
      std::unique_ptr<Shard> shard, const std::vector<VariableSpec>& variables)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckJob(const std::string& job_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  // Shared with loans, which may outlive the host.
  const std::shared_ptr<EventQueue<int>> returned_parts_ =
      std::make_shared<EventQueue<int>>();

  // Held while a shard is opened or made.
  mutable Mutex create_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);

  mutable Mutex mutex_;
  // Of the shard that is being made now or was last.
  std::shared_ptr<FillProgress> progress_ ABSL_GUARDED_BY(mutex_);
  bool creating_ ABSL_GUARDED_BY(mutex_) = false;  // now
  bool stop_creating_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK: it is open
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  EpochFence fence_ ABSL_GUARDED_BY(mutex_){options_.task_index};
  std::shared_ptr<Shard> shard_ ABSL_GUARDED_BY(mutex_);
  std::vector<VariableSpec> variables_ ABSL_GUARDED_BY(mutex_);  // of shard_
  WorkerFences fences_ ABSL_GUARDED_BY(mutex_);  // kept in the shard's state
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SHARD_SHARD_HOST_H_
