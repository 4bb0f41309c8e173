#include "chief/page/worker_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text/figure_text.h"

namespace lockstep::chief {
namespace {

// Each kind of trouble outweighs all kinds below it.
constexpr double kGone = 1e9;
constexpr double kSilent = 1e7;
constexpr double kSlowWeight = 1e4;

// A worker is silent if it has missed so many heartbeats, for at least so long.
constexpr int kMissedHeartbeats = 4;
constexpr absl::Duration kSilence = absl::Seconds(5);
// No pass of a healthy worker takes this many times as long as its others.
constexpr double kStuck = 10;

void Judge(bool training, absl::Duration heartbeat_interval, WorkerRow& row) {
  const MemberStatus& member = row.member;
  // Before training a missing worker may still be starting.
  if (member.state == MemberState::kDead ||
      (member.state == MemberState::kMissing && training)) {
    row.weight = kGone;
    row.trouble = std::string(MemberStateName(member.state));
    return;
  }
  if (member.state != MemberState::kAlive) return;
  const absl::Duration silence =
      member.since_heartbeat.value_or(absl::ZeroDuration());
  const absl::Duration missed = kMissedHeartbeats * heartbeat_interval;
  if (silence > std::max(kSilence, missed)) {
    row.weight = kSilent + absl::ToDoubleSeconds(silence);
    row.trouble = absl::StrCat("silent for ", FormatAge(silence));
    return;
  }
  if (!row.pace.has_value() || !member.counts.has_value()) return;
  const WorkerCounts& counts = *member.counts;
  // The age includes the time since the heartbeat, in which the worker may have
  // gone on to other passes.
  const double age = absl::ToDoubleSeconds(
      counts.activity_age -
      (silence > missed ? absl::ZeroDuration() : silence));
  // Only computing counts: a worker that waits is not stuck itself.
  if (counts.computes && age > 1 && age > kStuck * row.pace->busy_seconds) {
    row.weight = kSilent + age;
    row.trouble =
        absl::StrCat(counts.activity, " for ", FormatAge(counts.activity_age));
    return;
  }
  if (row.pace->slowness >= kSlow) {
    row.weight = kSlowWeight * row.pace->slowness;
    row.trouble = absl::StrFormat("%.1f times slower", row.pace->slowness);
  }
}

}  // namespace

std::vector<WorkerRow> RankWorkers(const JobStatus& status,
                                   const std::map<int, WorkerPace>& paces,
                                   absl::Duration heartbeat_interval) {
  std::vector<WorkerRow> rows;
  for (MemberStatus& member : WorkersOf(status)) {
    WorkerRow row;
    row.member = std::move(member);
    // A worker that has reported only once has no pace yet.
    const auto pace = paces.find(WorkerIndexOf(row.member).value_or(-1));
    if (pace != paces.end()) row.pace = pace->second;
    Judge(status.state == lockstep::JobState::kTraining, heartbeat_interval,
          row);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const WorkerRow& a, const WorkerRow& b) {
                     return a.weight > b.weight;
                   });
  return rows;
}

WorkerSum SumRows(const std::vector<WorkerRow>& rows, size_t first) {
  WorkerSum sum;
  for (size_t i = first; i < rows.size(); ++i) {
    ++sum.workers;
    if (!rows[i].member.counts.has_value()) continue;
    const WorkerCounts& counts = *rows[i].member.counts;
    sum.passes += counts.passes;
    sum.accepted += counts.accepted;
    sum.stale += counts.stale;
    sum.waiting += counts.waiting;
  }
  return sum;
}

}  // namespace lockstep::chief
