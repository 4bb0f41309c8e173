#ifndef LOCKSTEP_SERVER_SHARD_SHARD_HOST_H_
#define LOCKSTEP_SERVER_SHARD_SHARD_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/event_queue.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "server/shard/epoch_fence.h"
#include "server/shard/shard.h"
#include "server/shard/shard_factory.h"
#include "server/state/file/worker_fences.h"

namespace lockstep::server {

// ShardHost is the state of a ps process around its shard: the job, the chief
// that it follows, the incarnations of workers that are admitted, and the shard
// once the chief has created it.
//
// Threads: safe to share. A shard that was handed out lives as long as the last
//          pointer to it.
class ShardHost {
 public:
  struct Options {
    int task_index = 0;
    uint64_t incarnation = 0;
    std::string state_dir;
    bool shared_memory = true;             // with workers of this host
    TaskId chief = {TaskType::kChief, 0};  // or the worker that hosts it
    int num_servers = 0;                   // of its cluster; 0: not known
    // The time that Create() waits for the memory of a shard that it discards.
    absl::Duration longest_release = absl::Seconds(10);
  };

  explicit ShardHost(const Options& options) : options_(options) {}

  int task_index() const { return options_.task_index; }

  // The parts whose readers have returned them. The caller must pass each to
  // Engine::PartReturned() of the current shard, in a thread that may update a
  // part; gRPC's threads must not.
  EventQueue<int>& returned_parts() { return *returned_parts_; }

  // Receives an entry, whose value has no meaning, whenever a mirror may want
  // other means. Only one thread may take entries out.
  EventQueue<int>& attempts() { return *attempts_; }

  // Checks that a peer means this server. Without this check a peer with
  // another list of servers could use one that has parts of the same shape.
  //
  //   kInvalidArgument  the peer means another server; the message says what to
  //                     change
  absl::Status CheckMeant(int server) const;

  // Checks that the servers which sum the parts of a mirrored job are in this
  // server's cluster: it fetches their means from there. The mirrors of an
  // elastic job open their state again whenever other mirrors sum its parts.
  //
  //   kInvalidArgument     one is not; the message says what to change
  //   kFailedPrecondition  an elastic job, and the state is in no file
  absl::Status CheckMirrors(const JobConfig& job,
                            const std::vector<PartSpec>& parts) const;

  // Checks that a sender is the task that steers servers.
  //
  //   kPermissionDenied  it is another task
  absl::Status CheckIsChief(const TaskId& sender) const;

  // Must be called with the job of the chief's registration; until then all
  // calls are refused. Reads the epoch of the chief that was followed last, if
  // an earlier process of this task has left its state. If this process holds
  // the shard of another job, all calls are refused.
  void SetJobId(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // The job of SetJobId(); empty before that call.
  std::string job_id() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Draws an epoch for the chief with the incarnation `chief`, as
  // EpochFence::Draw(), writes it to the state and follows it. Withdraws the
  // grant of commits of the previous chief.
  //
  //   kUnavailable         no job yet; also returned by the calls below
  //   kFailedPrecondition  another job
  //   and the errors of EpochFence::Draw()
  absl::StatusOr<uint64_t> TakeEpoch(const std::string& job_id,
                                     uint64_t newer_than = 0,
                                     uint64_t chief = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses all later calls with `why`. Calls that were admitted before are
  // filed already, so the caller must end them afterwards.
  void Close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Follows a chief from now on. Must be called by the call that creates the
  // shard, which comes before all others of its epoch.
  //
  //   kFailedPrecondition  another job
  //   and the errors of EpochFence::CheckMayFollow()
  absl::Status FollowChief(const std::string& job_id, uint64_t epoch,
                           uint64_t chief = 0) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the error that FollowChief() would return, without following: the
  // caller can check the rest of a call first.
  absl::Status CheckMayFollow(const std::string& job_id, uint64_t epoch,
                              uint64_t chief = 0) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits the chief that this server follows.
  //
  //   kFailedPrecondition  another job
  //   and the errors of EpochFence::CheckFollowed()
  absl::Status CheckChief(const std::string& job_id, uint64_t epoch,
                          uint64_t chief = 0) ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits a worker, or a reader of values, and returns the open shard.
  //
  //   kUnavailable         no shard, or the chief has not opened it yet
  //   kFailedPrecondition  another job, or an incarnation that was expired or
  //                        shut out
  absl::StatusOr<std::shared_ptr<Shard>> Admit(const std::string& job_id,
                                               const TaskId& task,
                                               uint64_t incarnation) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits a worker, and adds its memory to the shared gradients of `shard`,
  // from which ExpireWorker() removes it.
  //
  //   kUnavailable  also: `shard` is not the open shard any more
  //   and the errors of Admit() and SharedGradients::Add()
  absl::Status ShareGradients(const std::string& job_id, const TaskId& worker,
                              uint64_t incarnation,
                              const std::shared_ptr<Shard>& shard,
                              std::shared_ptr<const PeerMemory> memory,
                              std::vector<uint64_t> offsets)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Checks that a shard can be made of this description, given the memory.
  //
  //   kInvalidArgument  it cannot; the message says why
  static absl::Status CheckDescription(
      const JobConfig& job, const std::vector<VariableSpec>& variables,
      const std::vector<PartSpec>& parts);

  using Keep = lockstep::server::Keep;
  // Must end the calls that wait for the discarded shard, which would never be
  // answered, and those that hold its memory. Called with no lock of other
  // calls held.
  using LetGo = std::function<void()>;
  // Creates the shard, opens it from the state of an earlier process, or
  // returns the existing one. State that cannot be read counts as none. May
  // take minutes; other calls are served meanwhile as if there were no shard,
  // and a second Create() waits for the first.
  //
  // An existing shard is opened again from its state if the job's rules have
  // been edited, or other mirrors sum its parts, as a successor of this process
  // would open it: all servers must compute by the same rules. A shard that was
  // written but never opened, in an older epoch, counts as none: its writer has
  // given up.
  //
  // There may be no room for two shards, so a shard that goes must have
  // released its memory and its file before another one is made. `let_go` is
  // called once that shard is not handed out, and again while calls that were
  // admitted earlier hold its memory.
  //
  //   kFailedPrecondition  the existing state has another job, layout or
  //                        version
  //   kUnavailable         its epoch is newer than the one followed, or another
  //                        process uses it; or calls that have not ended yet
  //                        use the shard that goes
  //   and the errors of Shard::Create(); with kNothing there is no shard then
  absl::StatusOr<std::shared_ptr<Shard>> Create(
      const JobConfig& job, const std::vector<VariableSpec>& variables,
      const std::vector<PartSpec>& parts, Keep keep = Keep::kState,
      const LetGo& let_go = [] {}) ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // The progress of the running or the last Create(); null before the first.
  std::shared_ptr<const FillProgress> fill_progress() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends running and later Create() calls with kCancelled. Must be called when
  // the process ends.
  void StopCreating() ABSL_LOCKS_EXCLUDED(mutex_);

  //   kUnavailable  not created yet
  absl::StatusOr<std::shared_ptr<Shard>> shard() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Acquires and releases each lock that calls need, one after the other. Does
  // not return while one of them is stuck.
  void TouchLocks() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses incarnations of the worker up to `incarnation` from now on, in this
  // process and in later ones that find the state. Unmaps the memory that those
  // incarnations share.
  void ExpireWorker(int worker, uint64_t incarnation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Stores these facts about workers, for this process and for later ones that
  // find the state. Only the first call of an epoch shuts workers out, so that
  // a delayed call does no harm; that call must name all workers that have used
  // up their data.
  void KeepStandings(const std::vector<WorkerStanding>& workers)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<WorkerStanding> Standings() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes the state file, if there is one, even that of an earlier process.
  // Stops a running Create(). Errors: those of StateFile::Discard().
  absl::Status RemoveState() ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

 private:
  // Writes `epoch` into the state of the job, if there is any.
  absl::Status KeepEpoch(uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps the epoch, and then follows it.
  absl::Status SetEpoch(uint64_t epoch, uint64_t chief)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StateHeader FileHeader() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ShardState::Options StateOptions(const JobConfig& job,
                                   const std::vector<VariableSpec>& variables,
                                   const std::vector<PartSpec>& parts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the existing shard may stay; false if it must be opened again.
  absl::StatusOr<bool> MayStay(const ShardState::Options& options) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the existing shard, or null if it must be opened or made. Moves a
  // shard that is discarded to the caller, which must release it without the
  // lock: unmapping takes long.
  absl::StatusOr<std::shared_ptr<Shard>> FindShard(
      const ShardState::Options& options, Keep keep,
      std::shared_ptr<Shard>& discarded) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until the memory of the shard that was discarded last is free.
  //
  //   kUnavailable  it is not within Options::longest_release
  //   kCancelled    `progress` was stopped
  absl::Status AwaitRelease(FillProgress& progress, const LetGo& let_go)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(create_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes a shard from Create() the one of this host.
  absl::StatusOr<std::shared_ptr<Shard>> Install(
      std::unique_ptr<Shard> shard, const ShardState::Options& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckAdmitted(const std::string& job_id, const TaskId& task,
                             uint64_t incarnation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckJob(const std::string& job_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  // Shared with loans, which may outlive the host.
  const std::shared_ptr<EventQueue<int>> returned_parts_ =
      std::make_shared<EventQueue<int>>();
  const std::shared_ptr<EventQueue<int>> attempts_ =
      std::make_shared<EventQueue<int>>();

  // Serializes Create().
  mutable Mutex create_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  // ShardState::presence() of the shard that was discarded last.
  std::weak_ptr<const void> leaving_ ABSL_GUARDED_BY(create_mutex_);

  mutable Mutex mutex_;
  // The progress of the running or the last Create().
  std::shared_ptr<FillProgress> progress_ ABSL_GUARDED_BY(mutex_);
  bool creating_ ABSL_GUARDED_BY(mutex_) = false;  // Create() is running
  bool stop_creating_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK: it is open
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  EpochFence fence_ ABSL_GUARDED_BY(mutex_){options_.task_index};
  std::shared_ptr<Shard> shard_ ABSL_GUARDED_BY(mutex_);
  std::vector<VariableSpec> variables_ ABSL_GUARDED_BY(mutex_);  // of shard_
  std::string shard_job_ ABSL_GUARDED_BY(mutex_);                // likewise
  WorkerFences fences_ ABSL_GUARDED_BY(mutex_);  // kept in the shard's state
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_SHARD_HOST_H_
