#include "deploy/cli/run/plain_progress.h"

#include "absl/strings/str_cat.h"
#include "common/text/count_text.h"
#include "deploy/cli/status/status_line.h"
#include "deploy/cli/status/status_text.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

std::string StartLine(const JobStatus& status) {
  return absl::StrCat(status.settings.paused ? "ready to train, but paused"
                      // Short steps are committed before the first look.
                      : status.step > 0 ? "training has started"
                                        : "training starts",
                      ": step ", status.step, " of ", status.train_steps, ", ",
                      CountText(WorkersOf(status).size(), "worker"));
}

std::string LongestWaitOf(const JobStatus& status, absl::Duration at_least) {
  const std::optional<WaitStatus> wait = LongestWait(status);
  if (!wait.has_value() || wait->since < at_least) return "";
  return absl::StrCat(", ", WaitText(*wait));
}

std::string ProgressLine(const JobStatus& status,
                         std::optional<absl::Duration> eta) {
  if (status.state != JobState::kTraining || status.settings.paused) {
    return absl::StrCat(ShownState(status), ": step ", status.step, " of ",
                        status.train_steps,
                        LongestWaitOf(status, absl::ZeroDuration()));
  }
  std::string line =
      absl::StrCat("step ", status.step, " of ", status.train_steps);
  if (status.step > 0) {
    if (status.has_loss()) {
      absl::StrAppend(&line, ", loss ", FormatFigure(status.loss, 4));
    }
    AppendSpeed(status, line);
  }
  if (status.evaluation.has_value()) {
    absl::StrAppend(&line, ", ", ScoreText(*status.evaluation), " at step ",
                    status.evaluation->step);
  }
  const std::string wait = LongestWaitOf(status, StatusLine::kLongWait);
  // While no step is made its estimate grows without end.
  if (eta.has_value() && wait.empty()) {
    absl::StrAppend(&line, ", ETA ", FormatClock(*eta));
  }
  return absl::StrCat(line, wait);
}

}  // namespace

std::optional<std::string> PlainProgress::Next(
    const JobStatus& status, std::optional<absl::Duration> eta,
    absl::Time now) {
  if (!IsDue(status, now)) return std::nullopt;
  // Also a job that was resumed starts here, at the step of its checkpoint.
  const bool starts = !training_seen_ && status.state == JobState::kTraining;
  last_line_ = now;
  training_seen_ = training_seen_ || starts;
  if (status.evaluation.has_value()) {
    last_scored_step_ = status.evaluation->step;
  }
  return starts ? StartLine(status) : ProgressLine(status, eta);
}

bool PlainProgress::IsDue(const JobStatus& status, absl::Time now) const {
  if (IsFinal(status.state)) return false;  // the last line reports it
  if (!training_seen_ && status.state == JobState::kTraining) return true;
  if (status.evaluation.has_value() &&
      status.evaluation->step != last_scored_step_) {
    return true;
  }
  return now - last_line_ >= interval_;
}

}  // namespace lockstep::cli
