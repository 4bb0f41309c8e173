#include "chief/page/worker_paces.h"

#include <algorithm>

namespace lockstep::chief {
namespace {

constexpr double kWeight = 0.3;  // of the newest report

void Mix(double newest, bool first, double& mean) {
  mean = first ? newest : (1 - kWeight) * mean + kWeight * newest;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + (values.end() - values.begin()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void WorkerPaces::Add(const std::vector<MembershipTable::Member>& members) {
  for (const MembershipTable::Member& member : members) {
    if (member.task.type != TaskType::kWorker || member.incarnation == 0) {
      continue;
    }
    Seen& seen = seen_[member.task.index];
    seen.alive = member.state == MembershipTable::State::kAlive;
    const Progress& before = seen.progress;
    const Progress& after = member.progress;
    const absl::Time at = member.last_heartbeat;
    // The counts of a new process begin at 0: its first report is only a
    // beginning.
    if (seen.incarnation != member.incarnation) {
      seen = {member.incarnation, at, after, seen.alive, false, {}};
      continue;
    }
    const auto passes = static_cast<double>(after.passes - before.passes);
    const double seconds = absl::ToDoubleSeconds(at - seen.at);
    // The report is the same as before: `seen` stays, and the next one covers
    // both.
    if (passes <= 0 || seconds <= 0) continue;
    const double waited = std::clamp(
        absl::ToDoubleSeconds(after.waiting - before.waiting), 0.0, seconds);
    const bool first = !seen.measured;
    Mix((seconds - waited) / passes, first, seen.pace.busy_seconds);
    Mix(waited / seconds, first, seen.pace.waiting_share);
    Mix(static_cast<double>(after.accepted - before.accepted) / passes, first,
        seen.pace.counted_share);
    seen.measured = true;
    seen.at = at;
    seen.progress = after;
  }
}

std::map<int, WorkerPace> WorkerPaces::Get() const {
  std::map<int, WorkerPace> paces;
  std::vector<double> busy;
  for (const auto& [worker, seen] : seen_) {
    if (!seen.alive || !seen.measured) continue;
    paces[worker] = seen.pace;
    busy.push_back(seen.pace.busy_seconds);
  }
  if (paces.empty()) return paces;
  const double median = Median(std::move(busy));
  for (auto& [worker, pace] : paces) {
    pace.slowness = median > 0 ? pace.busy_seconds / median : 1;
    pace.counted_share = std::clamp(pace.counted_share, 0.0, 1.0);
  }
  return paces;
}

}  // namespace lockstep::chief
