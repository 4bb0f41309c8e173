#include "deploy/cli/run/run_view.h"

#include "absl/strings/str_cat.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {

RunView::RunView(Terminal& terminal, absl::Time start)
    : terminal_(terminal),
      line_(terminal.colour()),
      answered_(start),
      complained_(start) {}

void RunView::OnStatus(const JobStatus& status, absl::Time now) {
  // A chief keeps its newest notice: this is another chief, and the clock, from
  // which the numbers come, was set back before it began.
  if (!status.notices.empty() && status.notices.back().number < last_notice_) {
    last_notice_ = 0;
  }
  for (const Notice& notice : status.notices) {
    // Each answer of the chief has its newest notices, also those of earlier
    // answers.
    if (notice.number <= last_notice_) continue;
    last_notice_ = notice.number;
    Note(Printable(notice.text));
  }
  if (status.state == JobState::kTraining) {
    if (status.settings.paused) {
      eta_ = Eta();  // a rate that includes a pause is meaningless
    } else {
      eta_.Record(now, status.step);
    }
    // Lines that are not redrawn have no counts to be explained.
    if (terminal_.live() && !legend_shown_) Note(StatusLine::kLegend);
    legend_shown_ = true;
  }
  status_ = status;
  answered_ = now;
}

void RunView::OnRestart(TaskId task) {
  ++restarts_;
  Note(absl::StrCat(task.ToString(), " runs again"));
}

void RunView::Refresh(absl::Time now) {
  if (terminal_.live()) {
    terminal_.ShowLive(LiveLine(now));
  } else {
    PrintPlain(now);
  }
}

void RunView::Note(absl::string_view text) {
  terminal_.Print(absl::StrCat(text, "\n"));
}

// Leaves the last column free: some terminals start a new line after it.
std::string RunView::LiveLine(absl::Time now) const {
  const size_t columns = terminal_.Columns() - 1;
  const std::string silence = SilenceText(now);
  if (!silence.empty()) return Clip(silence, columns);
  if (!status_.has_value()) return "starting";
  return line_.Format(*status_, Remaining(), restarts_, columns);
}

// Empty while the chief answers, and when the job has ended.
std::string RunView::SilenceText(absl::Time now) const {
  if (now - answered_ < kSilence) return "";
  if (!status_.has_value()) {
    return absl::StrCat("starting: the chief has not answered yet (",
                        FormatAge(now - answered_), ")");
  }
  // A chief that has ended its job does not answer any longer.
  if (IsFinal(status_->state)) return "";
  return absl::StrCat("the chief has not answered for ",
                      FormatAge(now - answered_), "; it was at step ",
                      status_->step, " of ", status_->train_steps);
}

void RunView::PrintPlain(absl::Time now) {
  const std::string silence = SilenceText(now);
  if (!silence.empty()) {
    if (now - complained_ < kPlainInterval) return;
    complained_ = now;
    return Note(silence);
  }
  if (!status_.has_value()) return;
  const std::optional<std::string> line =
      plain_.Next(*status_, Remaining(), now);
  if (line.has_value()) Note(*line);
}

std::optional<absl::Duration> RunView::Remaining() const {
  return eta_.Remaining(status_->train_steps);
}

}  // namespace lockstep::cli
