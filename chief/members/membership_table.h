#ifndef LOCKSTEP_CHIEF_MEMBERS_MEMBERSHIP_TABLE_H_
#define LOCKSTEP_CHIEF_MEMBERS_MEMBERSHIP_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// How the chief knows that an incarnation is over.
enum class DeathCause {
  kSilent,    // its lease has ended
  kReplaced,  // a newer incarnation of its task has registered
  kUnknown,   // gone, or not known, when all began from a checkpoint or anew:
              // perhaps there was none
  kWentBack,  // it may live, but the job went back to an earlier step
  kLeft,      // it said so, and why
};

// MembershipTable holds the tasks of the cluster: which of them live, with
// which incarnation, and their newest reports.
//
//   missing -> alive -> left
//              ^   |
//              |   v lease ended, or a newer incarnation registered
//              dead
//
// Out of left and dead leads only a new incarnation.
//
// A dead incarnation of a worker must be cleaned up on the servers before its
// successor may join: TakeDead() hands it out, Buried() says it is done.
//
// A chief that is started again has an empty table. It takes over a member of
// the chief before with that member's next heartbeat. A task that is silent, or
// registers anew, may have a predecessor that must be cleaned up first and
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
    std::string leave_reason = {};            // of kLeft, for people
    LeaveCause leave = LeaveCause::kStopped;  // of kLeft
    Progress progress = {};
    std::optional<ProcessLoad> load = {};  // as it reported it last
  };

  // An incarnation that ended without leaving, or was replaced.
  struct Dead {
    TaskId task;
    uint64_t incarnation = 0;
    std::string reason;  // for people
    DeathCause cause = DeathCause::kSilent;
    LeaveCause leave = LeaveCause::kStopped;  // of kLeft
  };

  // A member of which no heartbeat has come for `silence` need not live.
  MembershipTable(const std::vector<TaskId>& tasks, absl::Duration lease,
                  absl::Duration silence);
  MembershipTable(const std::vector<TaskId>& tasks, absl::Duration lease)
      : MembershipTable(tasks, lease, lease) {}

  // Makes an incarnation the member for its task.
  //
  //   kNotFound            the cluster has no such task
  //   kInvalidArgument     an incarnation that no clock can have led to
  //   kFailedPrecondition  a newer incarnation has registered, or this one
  //                        has left or was declared dead. If the newer one
  //                        does not live, as one whose clock was ahead, the
  //                        status has it as NewestIncarnationOf()
  //   kUnavailable         its predecessor is being cleaned up, or it is not
  //                        known yet whether a newer one lives; retry. A
  //                        predecessor that was alive is dead from now on
  absl::Status Register(const TaskId& task, uint64_t incarnation,
                        absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the sender of a heartbeat the member for its task, as Register()
  // does, if a chief before this one knew it: the task has no member, or one of
  // an older incarnation. Otherwise nothing changes.
  //
  //   kAborted  it has been given up; register with a new incarnation
  //   and what Register() says
  absl::Status TakeOver(const TaskId& task, uint64_t incarnation,
                        absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Renews a lease. `progress` and `load` may be null.
  //
  //   kNotFound            the cluster has no such task
  //   kAborted             its lease had ended; register with a new
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
  //   kUnavailable  it has ended, but servers do not know yet that the worker
  //                 has used up its data, which a chief that is started again
  //                 must learn from them; retry
  absl::Status Leave(const TaskId& task, uint64_t incarnation, LeaveCause cause,
                     const std::string& reason, const Progress* progress,
                     absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Declares members dead whose lease has ended, and returns all that are dead
  // or left and not buried.
  std::vector<Dead> TakeDead(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Buried(const TaskId& task, uint64_t incarnation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Elastic jobs: until SetWorkers() is called, workers that this table does
  // not know may be members of a chief before, and are told to retry.
  void AwaitWorkers() ABSL_LOCKS_EXCLUDED(mutex_);
  // The job is over. Where SetWorkers() was not called since AwaitWorkers(),
  // any worker that heartbeats is taken over, so that it hears of the end.
  void TakeOverAllWorkers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether workers may be members of a chief before that this table does not
  // know.
  bool AwaitsWorkers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Elastic jobs: these are the workers from now on. Other workers stay in the
  // table while they live or have to be buried, and are taken out otherwise. A
  // worker that is taken out may live, though it was declared dead: its
  // heartbeat is answered with kAborted, so that it registers again.
  void SetWorkers(const std::vector<int>& workers) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a worker has been taken over, which means that there was a chief
  // before this one.
  bool HasTakenOver() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on a worker that registers for the first time has a predecessor
  // that this table has never heard of.
  void ExpectPredecessors() ABSL_LOCKS_EXCLUDED(mutex_);
  // Workers of which nothing has been heard since are dead, and must register
  // anew if they are not.
  void GiveUpPredecessors() ABSL_LOCKS_EXCLUDED(mutex_);

  // All begin from a checkpoint or anew. A worker may live of which this table
  // has not heard, or no longer hears as another chief does, and may hold what
  // does not count any more: servers admit no incarnation that is newer than
  // the one known here, until it registers and what it has been before is
  // buried. ShutOut() names the workers that this still holds for.
  void ShutOutWorkers() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, as a chief before has left it on the servers: a worker that was
  // taken over, and is newer than the incarnation that they admit, is dead.
  void ShutOutWorkers(const std::vector<WorkerStanding>& standings,
                      absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<WorkerStanding> ShutOut() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Renews the lease of every live member, after this process was away.
  void RenewAll(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Declares all members of a type dead, since the job went back; they may
  // register anew.
  void ExpireAll(TaskType type, const std::string& reason, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<Member> Members() const ABSL_LOCKS_EXCLUDED(mutex_);
  Member Get(const TaskId& task) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Tasks of `type` that are not alive, ascending.
  std::vector<TaskId> NotAlive(TaskType type) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    Member member;
    uint64_t newest = 0;  // that wanted to register
    // An older one that wants to register, and since when.
    uint64_t challenger = 0;
    absl::Time challenged = absl::InfinitePast();
    bool predecessor = false;  // one that was never heard of is to be buried
    bool given_up = false;     // a heartbeat takes no member over any more
    bool taken_over = false;   // the member, by its heartbeat
    // Servers admit no incarnation above this one.
    std::optional<uint64_t> shut_out{};
    std::vector<Dead> unburied;
  };

  // Whether a member that has left may go.
  static absl::Status CheckIsKnown(const Entry& entry);
  static absl::Status CheckBounds(const Entry& entry, uint64_t incarnation);
  // What an incarnation learns that is not above the member's.
  absl::Status RefuseOlder(Entry& entry, uint64_t incarnation, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RegisterLocked(Entry& entry, uint64_t incarnation,
                              absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Before a worker that is shut out may join.
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
  std::set<TaskId> taken_out_ ABSL_GUARDED_BY(mutex_);
  bool has_taken_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool awaits_workers_ ABSL_GUARDED_BY(mutex_) = false;
  bool takes_over_all_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_MEMBERS_MEMBERSHIP_TABLE_H_
