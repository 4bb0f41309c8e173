#ifndef LOCKSTEP_DEPLOY_CLI_RUN_PLAIN_PROGRESS_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_PLAIN_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/status/job_status.h"

namespace lockstep::cli {

// PlainProgress selects the lines of a run where no line can be redrawn: one
// when training starts, one for each new score, one every `interval`.
//
// Threads: not thread-safe.
class PlainProgress {
 public:
  explicit PlainProgress(absl::Duration interval) : interval_(interval) {}

  // Returns the line to print now, without a line feed; nothing if none is due.
  std::optional<std::string> Next(const JobStatus& status,
                                  std::optional<absl::Duration> eta,
                                  absl::Time now);

 private:
  bool IsDue(const JobStatus& status, absl::Time now) const;

  const absl::Duration interval_;
  absl::Time last_line_ = absl::InfinitePast();
  bool training_seen_ = false;
  int64_t last_scored_step_ = -1;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_PLAIN_PROGRESS_H_
