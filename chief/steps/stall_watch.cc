#include "chief/steps/stall_watch.h"

#include <algorithm>
#include <utility>

namespace lockstep::chief {
namespace {

int PushedBy(const StallWatch::Arrivals& arrivals, int worker) {
  const auto found = arrivals.pushed.find(worker);
  return found == arrivals.pushed.end() ? 0 : found->second;
}

}  // namespace

void StallWatch::Begin() {
  attempt_ = 0;
  members_.clear();
  std::fill(servers_.begin(), servers_.end(), std::nullopt);
}

void StallWatch::OnSet(int64_t attempt, std::vector<int> members,
                       absl::Time now) {
  if (attempt < attempt_) return;  // a late answer
  // Reports of an older attempt say nothing about this one: its gradients were
  // dropped.
  if (attempt > attempt_) Begin();
  attempt_ = attempt;
  // Patience begins when the set is full: before, members wait for one another
  // and none of them holds up the others.
  if (!members_.empty() || static_cast<int>(members.size()) < set_size_) return;
  for (int worker : members) members_[worker] = {ProgressOf(worker), now};
}

void StallWatch::OnArrivals(int server, int64_t attempt, Arrivals arrivals,
                            absl::Time now) {
  if (attempt != attempt_) return;
  servers_[server] = std::move(arrivals);
  for (auto& [worker, member] : members_) {
    const int64_t progress = ProgressOf(worker);
    // A member that sends, however slowly, is not stalled.
    if (progress != member.progress) member = {progress, now};
  }
}

bool StallWatch::IsMissed(int worker) const {
  return std::any_of(
      servers_.begin(), servers_.end(), [&](const auto& arrivals) {
        return arrivals.has_value() &&
               PushedBy(*arrivals, worker) < arrivals->open_parts;
      });
}

bool StallWatch::IsLost(int worker) const {
  return std::any_of(
      servers_.begin(), servers_.end(), [&](const auto& arrivals) {
        return arrivals.has_value() &&
               std::find(arrivals->lost.begin(), arrivals->lost.end(),
                         worker) != arrivals->lost.end();
      });
}

// A part that is open no longer has the gradients of all members.
int64_t StallWatch::ProgressOf(int worker) const {
  int64_t progress = 0;
  for (const auto& arrivals : servers_) {
    if (!arrivals.has_value()) continue;
    // Minus the number of the worker's missing parts, which grows to 0.
    progress += PushedBy(*arrivals, worker) - arrivals->open_parts;
  }
  return progress;
}

std::optional<StallWatch::Found> StallWatch::Find(
    absl::Time now, absl::Duration patience) const {
  const std::pair<const int, Member>* last = nullptr;
  // Only the one furthest behind: the others may be waiting for it.
  for (const auto& entry : members_) {
    if (!IsMissed(entry.first)) continue;
    if (IsLost(entry.first)) return Found{entry.first, true};
    const auto behind = [](const Member& m) {
      return std::pair(m.progress, m.since);
    };
    if (last == nullptr || behind(entry.second) < behind(last->second)) {
      last = &entry;
    }
  }
  if (last == nullptr || now - last->second.since < patience) {
    return std::nullopt;
  }
  return Found{last->first};
}

}  // namespace lockstep::chief
