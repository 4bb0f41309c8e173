#include "chief/members/membership_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/run_settings.h"
#include "common/text/duration_text.h"
#include "common/wire/incarnation_bounds.h"
#include "common/wire/status_detail.h"

namespace lockstep::chief {
namespace {

// True if an elastic job can have the worker.
bool CanJoin(const TaskId& task) {
  return task.type == TaskType::kWorker && task.index >= 0 &&
         task.index < RunSettings::kMaxWorkers;
}

// `joins`: its removal is being applied, and it has been let in again.
absl::Status NotInTable(const TaskId& task, bool joins) {
  return joins ? absl::UnavailableError(absl::StrCat(
                     task.ToString(),
                     " joins at the next step boundary; retry meanwhile"))
               : absl::NotFoundError(absl::StrCat(
                     task.ToString(),
                     " is not in the chief's cluster; correct TF_CONFIG"));
}

}  // namespace

MembershipTable::MembershipTable(const std::vector<TaskId>& tasks,
                                 absl::Duration lease, absl::Duration silence)
    : lease_(lease), silence_(std::min(lease, silence)) {
  for (const TaskId& task : tasks) entries_[task].member.task = task;
}

absl::Status MembershipTable::Register(const TaskId& task, uint64_t incarnation,
                                       absl::Time now) {
  MutexLock lock(mutex_);
  auto found = entries_.find(task);
  if (found == entries_.end()) {
    return NotInTable(task, /*joins=*/elastic_ && CanJoin(task));
  }
  Entry& entry = found->second;
  LOCKSTEP_RETURN_IF_ERROR(CheckBounds(entry, incarnation));
  // The task's process under the previous chief, if there was one, is buried
  // with incarnation 0, which servers resolve.
  if (entry.predecessor) {
    BuryPredecessor(entry, 0, "replaced", DeathCause::kReplaced);
  }
  if (entry.shut_out.has_value() && incarnation > *entry.shut_out) {
    LOCKSTEP_RETURN_IF_ERROR(LetIn(entry, incarnation, now));
  }
  return RegisterLocked(entry, incarnation, now);
}

void MembershipTable::BuryPredecessor(Entry& entry, uint64_t incarnation,
                                      const std::string& reason,
                                      DeathCause cause) {
  entry.predecessor = false;
  entry.given_up = true;
  entry.unburied.push_back({entry.member.task, incarnation, reason, cause});
}

absl::Status MembershipTable::CheckBounds(const Entry& entry,
                                          uint64_t incarnation) {
  return CheckDrawn(entry.member.task, incarnation,
                    std::max(entry.newest, entry.member.incarnation));
}

absl::Status MembershipTable::RefuseOlder(Entry& entry, uint64_t incarnation,
                                          absl::Time now) {
  const Member& member = entry.member;
  const absl::Status refused = absl::FailedPreconditionError(absl::StrCat(
      member.task.ToString(), " with incarnation ", incarnation,
      " has left, been replaced or been declared dead; the newest is ",
      member.incarnation, "; register with a new incarnation"));
  // The newer one does not live, for example because its clock was ahead: the
  // caller may draw an incarnation above it.
  if (member.state != State::kAlive || now - member.last_heartbeat > silence_) {
    return WithNewestIncarnation(refused, member.incarnation);
  }
  if (std::exchange(entry.challenger, incarnation) != incarnation) {
    entry.challenged = now;
  }
  // The older process has waited for `silence`, and the newer one has sent
  // heartbeats in that time: it lives.
  if (now - entry.challenged > silence_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "another process is ", member.task.ToString(), " and lives, with the ",
        "newer incarnation ", member.incarnation,
        "; give each process a task of its own"));
  }
  return absl::UnavailableError(absl::StrCat(
      "another process was ", member.task.ToString(), " until a moment ago; ",
      "retry, until it is known whether it lives"));
}

absl::Status MembershipTable::RegisterLocked(Entry& entry, uint64_t incarnation,
                                             absl::Time now) {
  Member& member = entry.member;
  const TaskId& task = member.task;
  const bool over =
      member.state == State::kDead || member.state == State::kLeft;
  if (incarnation < member.incarnation ||
      (incarnation == member.incarnation && over)) {
    return RefuseOlder(entry, incarnation, now);
  }
  // A newer incarnation: there is no dispute any more.
  entry.challenger = 0;
  entry.newest = std::max(entry.newest, incarnation);
  if (incarnation != member.incarnation) entry.taken_over = false;
  // A task has one process: the older one is dead, even if it still runs.
  if (incarnation > member.incarnation && member.state == State::kAlive) {
    entry.unburied.push_back({task, member.incarnation,
                              "replaced by a newer incarnation",
                              DeathCause::kReplaced});
    member.state = State::kDead;
    member.since = now;
  }
  // Servers must refuse the predecessor before its successor is a member.
  if (!entry.unburied.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "the predecessor of ", task.ToString(), " is being cleaned up; retry"));
  }
  if (incarnation != member.incarnation) member.progress = Progress();
  member.incarnation = incarnation;
  member.state = State::kAlive;
  member.sent_back = member.left_out = false;
  member.since = now;
  member.last_heartbeat = now;
  member.leave_reason.clear();
  return absl::OkStatus();
}

absl::Status MembershipTable::CheckMember(const TaskId& task,
                                          uint64_t incarnation) const {
  auto found = entries_.find(task);
  // It was taken out, or it joined under an earlier chief, whose workers the
  // checkpoint of the job does not name.
  if (found == entries_.end() && elastic_ && CanJoin(task)) {
    constexpr char kNoPart[] =
        " has no part in the job; register with a new incarnation to join it, "
        "or to learn why not";
    return absl::AbortedError(absl::StrCat(task.ToString(), kNoPart));
  }
  if (found == entries_.end() && awaits_workers_ &&
      task.type == TaskType::kWorker) {
    return absl::UnavailableError(absl::StrCat(
        "this chief has just started and does not know yet whether ",
        task.ToString(), " takes part; retry"));
  }
  if (found == entries_.end()) return NotInTable(task, /*joins=*/false);
  const Member& member = found->second.member;
  if (member.state == State::kMissing) {
    return absl::UnavailableError(
        absl::StrCat(task.ToString(), " is no member yet; retry"));
  }
  const bool dead = member.state == State::kDead;
  // kAborted only if no newer process wants the task: this one was declared
  // dead by mistake and may return.
  if (dead && member.incarnation == incarnation &&
      found->second.newest == incarnation) {
    return absl::AbortedError(
        absl::StrCat(task.ToString(), " with incarnation ", incarnation,
                     " was taken for dead; register with a new incarnation"));
  }
  if (dead || member.incarnation != incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat(task.ToString(), " with incarnation ", incarnation,
                     " is not a member (the newest is ", found->second.newest,
                     "); register with a new incarnation"));
  }
  return absl::OkStatus();
}

absl::Status MembershipTable::TakeOver(const TaskId& task, uint64_t incarnation,
                                       absl::Time now) {
  MutexLock lock(mutex_);
  if (takes_over_all_ && CanJoin(task)) {
    entries_[task].member.task = task;
  }
  auto found = entries_.find(task);
  if (found == entries_.end()) return absl::OkStatus();
  Entry& entry = found->second;
  LOCKSTEP_RETURN_IF_ERROR(CheckBounds(entry, incarnation));
  // The member is known, or the sender is older than one that wants to
  // register: the Heartbeat() that follows decides.
  if (incarnation < entry.newest || incarnation <= entry.member.incarnation) {
    return absl::OkStatus();
  }
  // Servers have fenced the worker off, so it must register again.
  if (entry.given_up && entry.member.state == State::kMissing) {
    return absl::AbortedError(
        absl::StrCat(task.ToString(),
                     " was silent for too long after this chief started; "
                     "register with a new incarnation"));
  }
  if (entry.shut_out.has_value() && incarnation > *entry.shut_out) {
    return absl::AbortedError(
        absl::StrCat(task.ToString(), " with incarnation ", incarnation,
                     " was not known when the job went back; register with a "
                     "new incarnation"));
  }
  // The predecessor is this process, and it is alive.
  entry.predecessor = false;
  const absl::Status status = RegisterLocked(entry, incarnation, now);
  entry.taken_over = status.ok();
  has_taken_over_ |= status.ok() && task.type == TaskType::kWorker;
  return status;
}

bool MembershipTable::HasTakenOver() const {
  MutexLock lock(mutex_);
  return has_taken_over_;
}

absl::Status MembershipTable::Heartbeat(const TaskId& task,
                                        uint64_t incarnation,
                                        const Progress* progress,
                                        absl::Time now,
                                        const ProcessLoad* load) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckMember(task, incarnation));
  Member& member = entries_[task].member;
  if (member.left_out) {
    return absl::AbortedError(
        absl::StrCat(task.ToString(), " cannot take part (",
                     member.leave_reason, "); register to learn of the cause"));
  }
  member.last_heartbeat = now;
  if (progress != nullptr) member.progress = *progress;
  if (load != nullptr) member.load = *load;
  return absl::OkStatus();
}

absl::Status MembershipTable::Leave(const TaskId& task, uint64_t incarnation,
                                    LeaveCause cause, const std::string& reason,
                                    const Progress* progress, absl::Time now) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckMember(task, incarnation));
  Entry& entry = entries_[task];
  // A repeated call.
  if (entry.member.state == State::kLeft) return CheckIsKnown(entry);
  entry.member.state = State::kLeft;
  entry.member.since = now;
  entry.member.leave_reason = reason;
  entry.member.leave = cause;
  if (progress != nullptr) entry.member.progress = *progress;
  entry.unburied.push_back({task, incarnation, absl::StrCat("left: ", reason),
                            DeathCause::kLeft, cause});
  return CheckIsKnown(entry);
}

bool MembershipTable::LeaveOut(const TaskId& task, const std::string& reason,
                               absl::Time now) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(task);
  if (found == entries_.end()) return false;
  Member& member = found->second.member;
  if (member.state != State::kAlive) return false;
  member.state = State::kLeft;
  member.since = now;
  member.leave_reason = reason;
  member.leave = LeaveCause::kCannotTakePart;
  member.left_out = true;
  found->second.unburied.push_back({task, member.incarnation,
                                    absl::StrCat("is left out: ", reason),
                                    DeathCause::kLeft, member.leave});
  return true;
}

absl::Status MembershipTable::CheckIsKnown(const Entry& entry) {
  // A worker that has used up its data is kept until servers know it: a chief
  // that is started again learns of it only from them.
  if (entry.unburied.empty() || !entry.member.HasEndedInput())
    return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("servers are being told that ",
                                             entry.member.task.ToString(),
                                             " has used up its data; retry"));
}

std::vector<MembershipTable::Dead> MembershipTable::TakeDead(absl::Time now) {
  MutexLock lock(mutex_);
  std::vector<Dead> dead;
  for (auto& [task, entry] : entries_) {
    Member& member = entry.member;
    if (member.state == State::kAlive && now - member.last_heartbeat > lease_) {
      member.state = State::kDead;
      member.since = now;
      entry.unburied.push_back(
          {task, member.incarnation,
           absl::StrCat("silent for ",
                        DurationText(now - member.last_heartbeat)),
           DeathCause::kSilent});
    }
    dead.insert(dead.end(), entry.unburied.begin(), entry.unburied.end());
  }
  return dead;
}

void MembershipTable::AwaitWorkers() {
  MutexLock lock(mutex_);
  awaits_workers_ = true;
}

void MembershipTable::TakeOverAllWorkers() {
  MutexLock lock(mutex_);
  takes_over_all_ = awaits_workers_;
}

void MembershipTable::SetWorkers(const std::vector<int>& workers) {
  MutexLock lock(mutex_);
  awaits_workers_ = false;
  elastic_ = true;
  for (int worker : workers) {
    const TaskId task{TaskType::kWorker, worker};
    Entry& entry = entries_[task];
    entry.member.task = task;
    if (auto former = former_.extract(task)) entry.shut_out = former.mapped();
  }
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto& [task, entry] = *it;
    // Removed only if nothing remains to be done for the worker: no burial, no
    // shut-out that a registration must end, and no live process.
    const bool out =
        task.type == TaskType::kWorker && entry.unburied.empty() &&
        !(entry.shut_out.has_value() && entry.member.incarnation == 0) &&
        entry.member.state != State::kAlive &&
        std::find(workers.begin(), workers.end(), task.index) == workers.end();
    if (out && entry.shut_out.has_value()) former_[task] = *entry.shut_out;
    it = out ? entries_.erase(it) : std::next(it);
  }
}

void MembershipTable::ExpectPredecessors() {
  MutexLock lock(mutex_);
  for (auto& [task, entry] : entries_) {
    entry.predecessor =
        task.type == TaskType::kWorker && entry.member.state == State::kMissing;
  }
}

void MembershipTable::GiveUpPredecessors() {
  MutexLock lock(mutex_);
  for (auto& [task, entry] : entries_) {
    if (entry.predecessor) {
      BuryPredecessor(entry, 0, "silent since this chief started",
                      DeathCause::kSilent);
    }
  }
}

void MembershipTable::RenewAll(absl::Time now) {
  MutexLock lock(mutex_);
  for (auto& [task, entry] : entries_) {
    if (entry.member.state == State::kAlive) entry.member.last_heartbeat = now;
  }
}

void MembershipTable::ExpireAll(TaskType type, const std::string& reason,
                                absl::Time now) {
  MutexLock lock(mutex_);
  for (auto& [task, entry] : entries_) {
    if (task.type != type) continue;
    if (entry.predecessor && type == TaskType::kWorker) {
      entry.shut_out = 0;
      entry.predecessor = false;
      entry.given_up = true;
    }
    if (entry.member.state != State::kAlive) continue;
    entry.member.SendBack(now);
    entry.unburied.push_back(
        {task, entry.member.incarnation, reason, DeathCause::kWentBack});
  }
}

void MembershipTable::Buried(const TaskId& task, uint64_t incarnation) {
  MutexLock lock(mutex_);
  auto found = entries_.find(task);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const size_t erased = std::erase_if(entry.unburied, [&](const Dead& dead) {
    return dead.incarnation == incarnation;
  });
  // Servers have just expired an incarnation above the one that they admitted,
  // and so admit the worker again.
  const bool lets_in =
      entry.shut_out.has_value() && erased > 0 && incarnation > *entry.shut_out;
  if (lets_in) entry.shut_out.reset();
}

std::vector<MembershipTable::Member> MembershipTable::Members() const {
  MutexLock lock(mutex_);
  std::vector<Member> members;
  for (const auto& [task, entry] : entries_) members.push_back(entry.member);
  return members;
}

MembershipTable::Member MembershipTable::Get(const TaskId& task) const {
  MutexLock lock(mutex_);
  auto found = entries_.find(task);
  return found == entries_.end() ? Member() : found->second.member;
}

std::vector<TaskId> MembershipTable::NotAlive(TaskType type) const {
  MutexLock lock(mutex_);
  std::vector<TaskId> missing;
  for (const auto& [task, entry] : entries_) {
    if (task.type == type && entry.member.state != State::kAlive) {
      missing.push_back(task);
    }
  }
  return missing;
}

}  // namespace lockstep::chief
