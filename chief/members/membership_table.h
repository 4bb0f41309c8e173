#ifndef LOCKSTEP_CHIEF_MEMBERS_MEMBERSHIP_TABLE_H_
#define LOCKSTEP_CHIEF_MEMBERS_MEMBERSHIP_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "common/plan/leave_cause.h"
#include "common/plan/process_load.h"
#include "common/plan/progress.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::chief {

// The reason why the chief takes an incarnation for ended.
enum class DeathCause {
  kSilent,    // its lease has ended
  kReplaced,  // a newer incarnation of its task has registered
  kUnknown,   // gone or not known when all began from a checkpoint or anew;
              // it may never have existed
  kWentBack,  // it may live, but the job went back to an earlier step
  kLeft,      // it left, with a reason
};

// MembershipTable holds the tasks of the cluster: which of them live, with
// which incarnation, and their newest reports.
//
//   missing -> alive -> left
//              ^   |
//              |   v lease ended, or a newer incarnation registered
//              dead
//
// Only a new incarnation leads out of left and dead.
//
// A dead incarnation of a worker must be cleaned up on the servers before its
// successor may join: the caller must bury what TakeDead() returns, and then
// call Buried().
//
// A chief that is started again has an empty table. It takes over a member of
// the previous chief with that member's next heartbeat. A task that is silent,
// or registers anew, may have a predecessor that must be cleaned up first and
// whose incarnation is not known (0): see ExpectPredecessors().
//
// Threads: safe to share.
// Errors:  a call that fails has changed nothing.
class MembershipTable {
 public:
  enum class State { kMissing, kAlive, kDead, kLeft };

  struct Member {
    TaskId task;
    State state = State::kMissing;
    uint64_t incarnation = 0;
    absl::Time last_heartbeat = absl::InfinitePast();
    absl::Time since = absl::InfinitePast();  // in this state
    bool sent_back = false;                   // kDead, by SendBack()
    std::string leave_reason = {};            // of kLeft, for messages
    LeaveCause leave = LeaveCause::kStopped;  // of kLeft
    Progress progress = {};
    std::optional<ProcessLoad> load = {};  // its last report
    bool left_out = false;                 // kLeft, by LeaveOut()

    // True if it has left because its data are used up.
    bool HasEndedInput() const {
      return state == State::kLeft && leave == LeaveCause::kEndOfInput;
    }
    // Takes it for dead since `at`, until it registers again.
    void SendBack(absl::Time at) {
      state = State::kDead;
      sent_back = true;
      since = at;
    }
  };

  // An incarnation that ended without leaving, or was replaced.
  struct Dead {
    TaskId task;
    uint64_t incarnation = 0;
    std::string reason;  // for messages
    DeathCause cause = DeathCause::kSilent;
    LeaveCause leave = LeaveCause::kStopped;  // of kLeft
  };

  // A member without a heartbeat for `silence` may be dead.
  MembershipTable(const std::vector<TaskId>& tasks, absl::Duration lease,
                  absl::Duration silence);
  MembershipTable(const std::vector<TaskId>& tasks, absl::Duration lease)
      : MembershipTable(tasks, lease, lease) {}

  // Makes an incarnation the member for its task.
  //
  //   kNotFound            the cluster has no such task
  //   kInvalidArgument     an incarnation beyond any that a clock gives
  //   kFailedPrecondition  a newer incarnation has registered, or this one
  //                        has left or was declared dead. If the newer one
  //                        does not live (its host's clock may have been
  //                        ahead), NewestIncarnationOf() returns it for the
  //                        status
  //   kUnavailable         its predecessor is being cleaned up, or it is not
  //                        known yet whether a newer one lives, or the workers
  //                        of an elastic job are still without it; retry. A
  //                        predecessor that was alive is dead from now on
  absl::Status Register(const TaskId& task, uint64_t incarnation,
                        absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the sender of a heartbeat the member for its task, as Register()
  // does, if a previous chief knew it: the task has no member, or one of an
  // older incarnation. Otherwise nothing changes.
  //
  //   kAborted  this incarnation was given up; it must register with a new one
  //   and the errors of Register()
  absl::Status TakeOver(const TaskId& task, uint64_t incarnation,
                        absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Renews a lease. `progress` and `load` may be null.
  //
  //   kNotFound            the cluster has no such task
  //   kAborted             its lease had ended, or it has no part in an elastic
  //                        job, or was left out; register with a new
  //                        incarnation
  //   kFailedPrecondition  not the member: replaced, even by one that cannot
  //                        join yet
  //   kUnavailable         the task has no member yet: retry
  absl::Status Heartbeat(const TaskId& task, uint64_t incarnation,
                         const Progress* progress, absl::Time now,
                         const ProcessLoad* load = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a membership in good order. Errors as Heartbeat, and
  //
  //   kUnavailable  the membership has ended, but servers do not know yet that
  //                 the worker has used up its data; retry. (A chief that is
  //                 started again learns that from servers alone.)
  absl::Status Leave(const TaskId& task, uint64_t incarnation, LeaveCause cause,
                     const std::string& reason, const Progress* progress,
                     absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the membership of a task that the job goes on without. Its process
  // must register again, and learn the reason then. Returns false, and changes
  // nothing, if no process of the task is alive.
  bool LeaveOut(const TaskId& task, const std::string& reason, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Declares members dead whose lease has ended, and returns all incarnations
  // that are dead or have left and are not buried.
  std::vector<Dead> TakeDead(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the servers have cleaned up a dead incarnation, so that its
  // successor may join. No effect if TakeDead() does not know it.
  void Buried(const TaskId& task, uint64_t incarnation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Elastic jobs: until SetWorkers() is called, workers that this table does
  // not know may be members of a previous chief; they get kUnavailable.
  void AwaitWorkers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Must be called when the job is over. If SetWorkers() was not called since
  // AwaitWorkers(), any worker that sends a heartbeat becomes a member, so that
  // it learns of the end.
  void TakeOverAllWorkers() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if workers that this table does not know may be members of a previous
  // chief.
  bool AwaitsWorkers() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return awaits_workers_;
  }
  // Elastic jobs: sets the workers. Other workers stay in the table while they
  // live or have to be buried, and are removed otherwise. A worker that is not
  // in the table may be alive, because it was declared dead by mistake or has
  // joined under a previous chief: its heartbeat is answered with kAborted, so
  // that it registers again.
  void SetWorkers(const std::vector<int>& workers) ABSL_LOCKS_EXCLUDED(mutex_);

  // True if a worker has been taken over: then there was a chief before this
  // one.
  bool HasTakenOver() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on, a worker that registers for the first time has a predecessor
  // that is unknown to this table.
  void ExpectPredecessors() ABSL_LOCKS_EXCLUDED(mutex_);
  // Declares workers dead that have been silent since ExpectPredecessors().
  // They must register again if they live.
  void GiveUpPredecessors() ABSL_LOCKS_EXCLUDED(mutex_);

  // Must be called when all members begin from a checkpoint or anew. A worker
  // that is unknown to this table, or that is in contact with another chief,
  // may be alive and hold gradients that no longer count. So servers admit no
  // incarnation newer than the one known here until it registers and its
  // predecessor is buried. ShutOut() returns the workers for which this still
  // holds. A worker that has used up its data, and that servers do not know of
  // yet, has data again: it must register again.
  void ShutOutWorkers() ABSL_LOCKS_EXCLUDED(mutex_);
  // As above, with the standings that a previous chief has left on the servers:
  // a worker that was taken over, and is newer than the incarnation that the
  // servers admit, is dead.
  void ShutOutWorkers(const std::vector<WorkerStanding>& standings,
                      absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<WorkerStanding> ShutOut() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Renews every lease. Must be called when this process itself was suspended,
  // so that the members' silence proves nothing.
  void RenewAll(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Declares all members of a type dead because the job went back, or has
  // changed so that they must learn of it; they may register again. Workers of
  // a previous chief that this table has not heard from are shut out, as by
  // ShutOutWorkers(): they may be at work, too.
  void ExpireAll(TaskType type, const std::string& reason, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all members, by task; or the member of one task, a default one if
  // the table does not have it.
  std::vector<Member> Members() const ABSL_LOCKS_EXCLUDED(mutex_);
  Member Get(const TaskId& task) const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the member was sent back and its last heartbeat is at most a lease
  // old: its process is taken for alive, and must register again.
  bool JoinsAgain(const Member& member, absl::Time now) const {
    return member.sent_back && now - member.last_heartbeat <= lease_;
  }

  // Tasks of `type` that are not alive, ascending.
  std::vector<TaskId> NotAlive(TaskType type) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    Member member;
    uint64_t newest = 0;  // the newest that tried to register
    // An older incarnation that tries to register, and its first attempt.
    uint64_t challenger = 0;
    absl::Time challenged = absl::InfinitePast();
    bool predecessor = false;  // an unknown predecessor must be buried
    bool given_up = false;     // heartbeats no longer take the member over
    bool taken_over = false;   // the member came by TakeOver()
    // Servers admit no incarnation above this one.
    std::optional<uint64_t> shut_out{};
    std::vector<Dead> unburied;
  };

  // Checks that the end of a member that has left may be confirmed.
  static absl::Status CheckIsKnown(const Entry& entry);
  static absl::Status CheckBounds(const Entry& entry, uint64_t incarnation);
  // Returns the error for an incarnation that is not above the member's.
  absl::Status RefuseOlder(Entry& entry, uint64_t incarnation, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RegisterLocked(Entry& entry, uint64_t incarnation,
                              absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Prepares the burial that a shut-out worker needs before it may join.
  absl::Status LetIn(Entry& entry, uint64_t incarnation, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BuryPredecessor(Entry& entry, uint64_t incarnation,
                       const std::string& reason, DeathCause cause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckMember(const TaskId& task, uint64_t incarnation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration lease_;
  const absl::Duration silence_;

  mutable Mutex mutex_;
  std::map<TaskId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // Entry::shut_out of workers that SetWorkers() has removed: servers keep to
  // it when such a worker comes back.
  std::map<TaskId, uint64_t> former_ ABSL_GUARDED_BY(mutex_);
  bool has_taken_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool awaits_workers_ ABSL_GUARDED_BY(mutex_) = false;
  bool elastic_ ABSL_GUARDED_BY(mutex_) = false;  // SetWorkers() was called
  bool takes_over_all_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_MEMBERS_MEMBERSHIP_TABLE_H_
