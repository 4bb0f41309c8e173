#ifndef LOCKSTEP_DEPLOY_CLI_RUN_RUN_VIEW_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_RUN_VIEW_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "common/status/job_status.h"
#include "deploy/cli/run/plain_progress.h"
#include "deploy/cli/status/eta.h"
#include "deploy/cli/status/status_line.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// RunView shows the progress of a run: one live line on a terminal, else a line
// now and then. It also shows that the chief does not answer.
//
// Threads: not thread-safe.
// Borrows: the terminal.
class RunView {
 public:
  static constexpr absl::Duration kPlainInterval = absl::Seconds(5);
  static constexpr absl::Duration kSilence = absl::Seconds(3);

  RunView(Terminal& terminal, absl::Time start);

  // Takes an answer of the chief. Prints the notices that are new.
  void OnStatus(const JobStatus& status, absl::Time now);

  // Records that a dead task runs again.
  void OnRestart(TaskId task);

  // Redraws the live line, or prints a line that is due.
  void Refresh(absl::Time now);

  // Prints a line of text.
  void Note(absl::string_view text);

  // The chief's last answer.
  const std::optional<JobStatus>& status() const { return status_; }

 private:
  std::string LiveLine(absl::Time now) const;
  std::string SilenceText(absl::Time now) const;
  void PrintPlain(absl::Time now);
  std::optional<absl::Duration> Remaining() const;

  Terminal& terminal_;
  const StatusLine line_;
  PlainProgress plain_{kPlainInterval};
  Eta eta_;
  std::optional<JobStatus> status_;
  int64_t last_notice_ = 0;  // number of the last one printed
  bool legend_shown_ = false;
  int restarts_ = 0;
  absl::Time answered_;  // time of the last answer, or of the start
  absl::Time complained_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_RUN_VIEW_H_
