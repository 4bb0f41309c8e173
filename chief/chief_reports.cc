// The part of Chief that says who waits for whom, and how the job ended.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "chief/chief.h"
#include "common/base/log.h"
#include "common/text/count_text.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
// How long something may be missing before the log says so, and how often it
// says so again.
constexpr absl::Duration kReportAfter = absl::Seconds(5);
constexpr absl::Duration kReportEvery = absl::Seconds(10);
// How long members are given to hear how the job ended, and a launcher to read
// the last status.
constexpr absl::Duration kLeaveGrace = absl::Seconds(10);
constexpr absl::Duration kLinger = absl::Milliseconds(600);

}  // namespace

std::string Chief::MissingWorkers() const {
  std::vector<std::string> missing;  // those that are not there come first
  std::vector<std::string> busy;
  for (const MembershipTable::Member& member : members_.Members()) {
    if (member.task.type != TaskType::kWorker) continue;
    const bool announced = std::find(announced_.begin(), announced_.end(),
                                     member.task.index) != announced_.end();
    if (announced && !stalls_.IsMissed(member.task.index)) continue;
    std::string text = member.task.ToString();
    if (member.state == MembershipTable::State::kMissing) {
      absl::StrAppend(&text, " (never started)");
    } else if (member.state != MembershipTable::State::kAlive) {
      absl::StrAppend(&text, " (gone)");
    } else {
      // A worker that has just joined has not said yet what it does.
      const std::string& activity = member.progress.activity;
      busy.push_back(
          activity.empty() ? text : absl::StrCat(text, " (", activity, ")"));
      continue;
    }
    missing.push_back(text);
  }
  missing.insert(missing.end(), busy.begin(), busy.end());
  return absl::StrJoin(missing, ", ");
}

StepWaits Chief::Waits() const {
  return {loop_->step() + 1, step_began_, server_waits_, MissingWorkers()};
}

void Chief::ReportWaits() {
  const absl::Time now = clock_.Now();
  const absl::Duration age = now - step_began_;
  if (age < absl::Seconds(1)) return;
  const std::vector<JobBoard::Wait> waits = Waits().List();
  board_.SetWaits(waits);
  if (age < kReportAfter || now - last_report_ < kReportEvery) return;
  last_report_ = now;
  spdlog::warn("step {} waits since {} for {}", loop_->step() + 1,
               absl::FormatDuration(absl::Trunc(age, absl::Milliseconds(100))),
               waits.front().waits_for);
}

void Chief::ReportLosses() const {
  if (losses_.recoveries == 0 && losses_.steps_redone == 0) return;
  spdlog::info(
      "in all: servers were away {}, {} redone, {} repeated; the job stood "
      "still for {}",
      CountText(losses_.recoveries, "time"),
      CountText(losses_.steps_redone, "step"),
      CountText(losses_.steps_repeated, "committed step"),
      absl::FormatDuration(
          absl::Trunc(losses_.stood_still, absl::Milliseconds(10))));
  for (const JobBoard::Death& death : board_.Get(clock_.Now()).deaths) {
    spdlog::info(
        "{} died at {} ({}); it held {}; redone: {}; the job stood "
        "still for {}",
        death.task,
        absl::FormatTime("%H:%M:%E3S", death.at, absl::UTCTimeZone()),
        death.reason, death.held,
        death.redone.empty() ? "nothing" : death.redone,
        absl::FormatDuration(
            absl::Trunc(death.stood_still.value_or(absl::ZeroDuration()),
                        absl::Milliseconds(1))));
  }
}

absl::Status Chief::CheckMaxWait() {
  if (clock_.Now() - step_began_ < job_.max_wait) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "step ", loop_->step() + 1, " waited longer than max_wait (",
      absl::FormatDuration(job_.max_wait), ") for ", Waits().Summary()));
}

void Chief::WaitForLeaves() {
  const absl::Time began = clock_.Now();
  while (clock_.Now() - began < kLeaveGrace) {
    // So that a successor may come and hear it too.
    for (const MembershipTable::Dead& dead : members_.TakeDead(clock_.Now())) {
      members_.Buried(dead.task, dead.incarnation);
    }
    // A worker that was taken for dead by mistake is about to join again, and
    // a chief that has just started has not heard of all yet.
    const bool may_join =
        clock_.Now() - began < job_.lease + job_.heartbeat_interval;
    bool awaited = false;
    for (const MembershipTable::Member& member : members_.Members()) {
      awaited = awaited || member.state == MembershipTable::State::kAlive ||
                (member.state == MembershipTable::State::kDead &&
                 member.task.type == TaskType::kPs) ||
                (may_join && member.task.type == TaskType::kWorker &&
                 member.state != MembershipTable::State::kLeft);
    }
    if (!awaited) break;
    absl::SleepFor(kTick);
  }
  absl::SleepFor(kLinger);
}

}  // namespace lockstep
