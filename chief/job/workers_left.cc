#include "chief/job/workers_left.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

// With AUTO the chief takes fewer gradients if workers are missing. An elastic
// job goes on without a worker that leaves.
int WorkersLeft::Needed() const {
  const bool any = settings_.tuned() || job_.elastic_workers;
  return any ? 1 : settings_.workers_needed();
}

bool WorkersLeft::InputEnded(const MembershipTable& members) const {
  // A worker that was taken out of an elastic job is none of these.
  const std::vector<int> workers = settings_.Workers();
  const auto gone =
      std::count_if(workers.begin(), workers.end(), [&](int worker) {
        return ended_.count(worker) > 0 &&
               members.Get({TaskType::kWorker, worker}).state !=
                   MembershipTable::State::kAlive;
      });
  const int left = settings_.num_workers() - static_cast<int>(gone);
  return left < std::max(settings_.workers_needed(), 1);
}

bool WorkersLeft::TooFewStay(
    const std::vector<MembershipTable::Member>& members) const {
  const auto left =
      std::count_if(members.begin(), members.end(),
                    [](const MembershipTable::Member& member) {
                      return member.task.type == TaskType::kWorker &&
                             member.state == MembershipTable::State::kLeft;
                    });
  return settings_.num_workers() - static_cast<int>(left) < Needed();
}

absl::Status WorkersLeft::CheckEnough(
    const MembershipTable::Dead& dead,
    const std::vector<MembershipTable::Member>& members) const {
  if (dead.leave != LeaveCause::kCannotTakePart) return absl::OkStatus();
  // A worker whose input ended may be back, and may fail then.
  const auto gone = std::count_if(
      members.begin(), members.end(),
      [this](const MembershipTable::Member& member) {
        using State = MembershipTable::State;
        if (member.task.type != TaskType::kWorker) return false;
        const bool failed = member.state == State::kLeft &&
                            member.leave == LeaveCause::kCannotTakePart;
        return failed || (member.state != State::kAlive &&
                          ended_.count(member.task.index) > 0);
      });
  const int left = settings_.num_workers() - static_cast<int>(gone);
  const int needed = Needed();
  if (left >= needed) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      dead.task.ToString(), " ", dead.reason, "; ", std::max(left, 0), " of ",
      settings_.num_workers(), " workers are left, and a step needs ", needed));
}

}  // namespace lockstep::chief
