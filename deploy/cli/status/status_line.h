#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_LINE_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_LINE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/status/job_status.h"

namespace lockstep::cli {

// StatusLine formats a job's status as one line that fits the terminal. If
// space is short, it drops the least important parts first: labels, then each
// worker's waiting time, then the single workers, then speed, scores and loss.
// A pause, and a wait of kLongWait, replace the workers and are kept longest,
// because people must see them.
//
// Threads: immutable.
// Units: widths count columns, which colours do not take.
class StatusLine {
 public:
  static constexpr absl::Duration kLongWait = absl::Seconds(3);

  // Explains "w 412/3/2s" in a line.
  static constexpr char kLegend[] =
      "w: gradients accepted/stale/seconds waited, worker by worker";

  explicit StatusLine(bool colour) : colour_(colour) {}

  // Returns at most `columns` columns, without a line feed. `restarts` counts
  // restarted tasks; 0 is not shown.
  std::string Format(const JobStatus& status, std::optional<absl::Duration> eta,
                     int restarts, size_t columns) const;

 private:
  const bool colour_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_LINE_H_
