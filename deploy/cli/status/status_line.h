#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_LINE_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_LINE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "deploy/cli/status/job_status.h"

namespace lockstep {

// StatusLine puts a job's status into one line that fits the terminal. What
// matters least goes first: labels, then each worker's waiting time, then the
// workers one by one, then speed, scores and loss. A pause, and a wait of
// kLongWait, take the place of the workers and stay longest, since they are
// what a person must see.
//
// Units: widths count columns, which colours do not take.
class StatusLine {
 public:
  static constexpr absl::Duration kLongWait = absl::Seconds(3);

  // What "w 412/3/2s" in a line means, for people.
  static constexpr char kLegend[] =
      "w: gradients accepted/stale/seconds waited, worker by worker";

  explicit StatusLine(bool colour) : colour_(colour) {}

  // At most `columns` columns, without a line feed. `restarts` counts the tasks
  // that were started again; 0 does not show.
  std::string Format(const JobStatus& status, std::optional<absl::Duration> eta,
                     int restarts, size_t columns) const;

 private:
  const bool colour_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_LINE_H_
