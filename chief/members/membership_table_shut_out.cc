// Workers that are shut out when the job goes back, until they register anew.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "chief/members/membership_table.h"
#include "common/wire/status_detail.h"

namespace lockstep::chief {

void MembershipTable::ShutOutWorkers() {
  MutexLock lock(mutex_);
  for (auto& [task, entry] : entries_) {
    if (task.type != TaskType::kWorker) continue;
    // 0 shuts out every incarnation of a worker that this chief has not heard
    // from.
    entry.shut_out = entry.member.incarnation;
    if (entry.member.HasEndedInput() && !entry.unburied.empty()) {
      entry.member.SendBack(entry.member.since);
      entry.unburied = {{task, entry.member.incarnation, "the job went back",
                         DeathCause::kWentBack}};
    }
    if (entry.member.incarnation != 0) continue;
    entry.predecessor = false;
    entry.given_up = true;
  }
}

void MembershipTable::ShutOutWorkers(
    const std::vector<WorkerStanding>& standings, absl::Time now) {
  MutexLock lock(mutex_);
  for (const WorkerStanding& standing : standings) {
    if (!standing.shut_out_above.has_value()) continue;
    const TaskId task{TaskType::kWorker, standing.worker};
    const auto found = entries_.find(task);
    if (found == entries_.end()) former_[task] = *standing.shut_out_above;
    if (found == entries_.end()) continue;
    Entry& entry = found->second;
    Member& member = entry.member;
    if (member.incarnation <= *standing.shut_out_above) {
      entry.shut_out = standing.shut_out_above;
    } else if (entry.taken_over && member.state == State::kAlive) {
      // Newer than the servers admit: it must register anew, after a burial.
      member.state = State::kDead;
      member.since = now;
    }
  }
}

std::vector<WorkerStanding> MembershipTable::ShutOut() const {
  MutexLock lock(mutex_);
  std::vector<WorkerStanding> workers;
  for (const auto& [task, entry] : entries_) {
    if (entry.shut_out) workers.push_back({task.index, entry.shut_out});
  }
  return workers;
}

absl::Status MembershipTable::LetIn(Entry& entry, uint64_t incarnation,
                                    absl::Time now) {
  const uint64_t admitted = *entry.shut_out;
  if (incarnation == admitted + 1) {
    // The burial below expires incarnation - 1, and only if that is above
    // `admitted` do servers admit the worker again.
    return WithNewestIncarnation(
        absl::FailedPreconditionError(absl::StrCat(
            entry.member.task.ToString(), " with incarnation ", incarnation,
            " follows directly on the one that is to be buried; register with "
            "a newer incarnation")),
        incarnation);
  }
  // A repeated registration: the burial has begun.
  const bool begun = std::any_of(
      entry.unburied.begin(), entry.unburied.end(),
      [&](const Dead& dead) { return dead.incarnation > admitted; });
  if (begun) return absl::OkStatus();
  if (entry.member.state == State::kAlive) {
    entry.member.state = State::kDead;
    entry.member.since = now;
    BuryPredecessor(entry, incarnation - 1, "replaced by a newer incarnation",
                    DeathCause::kReplaced);
  } else {
    BuryPredecessor(entry, incarnation - 1,
                    entry.member.incarnation > 0 ? "gone" : "no member",
                    DeathCause::kUnknown);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
