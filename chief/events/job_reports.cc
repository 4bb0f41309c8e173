#include "chief/events/job_reports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/text/count_text.h"
#include "common/text/duration_text.h"

namespace lockstep::chief {
namespace {

// One overload for each report: without one, std::visit() does not compile.
struct Writer {
  StatusTable& status_table;
  absl::Time now;

  void operator()(const StepReached& report) const {
    status_table.Stepped(report.step, now);
  }
  void operator()(const TrainingBegun& report) const {
    status_table.StartTraining(report.step, now);
  }
  void operator()(const StateReached& report) const {
    status_table.SetState(report.state, report.reason, now, report.hold);
  }
  void operator()(const Waits& report) const {
    status_table.SetWaits(report.waits);
  }
  void operator()(const SettingsInEffect& report) const {
    status_table.SetSettings(report.settings, now);
  }
  void operator()(const WentBack& report) const {
    status_table.GoBack(report.step);
  }
  void operator()(const LossesSoFar& report) const {
    status_table.SetLosses(report.losses);
  }
  void operator()(const ProcessDied& report) const {
    status_table.Died(report.death);
  }
  void operator()(const StepsRedone& report) const {
    status_table.Redone(report.what);
  }
  void operator()(const CheckpointSaved& report) const {
    // The clock of the machine that wrote it may be ahead.
    status_table.Checkpointed(report.step,
                              std::min(report.at.value_or(now), now));
  }
  void operator()(const CheckpointTroubled& report) const {
    status_table.CheckpointFailed(report.why);
  }
  void operator()(const ScoreTroubled& report) const {
    status_table.SetScoreTrouble(report.why);
  }
  void operator()(const StateSaved& report) const {
    status_table.SetStateSaved(report.saved);
  }
  void operator()(const Noticed& report) const {
    status_table.Notify(report.text, now);
  }
};

}  // namespace

void Write(const JobReport& report, StatusTable& status_table, absl::Time now) {
  std::visit(Writer{status_table, now}, report);
}

std::vector<std::string> SummaryOf(const StatusTable::View& view) {
  const StatusTable::Losses& losses = view.losses;
  std::vector<std::string> lines;
  // A summary is only worth a line if the job was disturbed.
  if (losses.recoveries == 0 && losses.steps_redone == 0) return lines;
  lines.push_back(absl::StrCat(
      "in all: servers were away ", CountText(losses.recoveries, "time"), ", ",
      CountText(losses.steps_redone, "step"), " redone, ",
      CountText(losses.steps_repeated, "committed step"),
      " repeated; the job stood still for ",
      DurationText(losses.stood_still, absl::Milliseconds(10))));
  for (const StatusTable::Death& death : view.deaths) {
    lines.push_back(absl::StrCat(
        death.task, " died at ",
        absl::FormatTime("%H:%M:%E3S", death.at, absl::UTCTimeZone()), " (",
        death.reason, "); it held ", death.held,
        "; redone: ", death.redone.empty() ? "nothing" : death.redone,
        "; the job stood still for ",
        DurationText(death.stood_still.value_or(absl::ZeroDuration()),
                     absl::Milliseconds(1))));
  }
  return lines;
}

}  // namespace lockstep::chief
