#ifndef LOCKSTEP_DEPLOY_CLI_RUN_RESTART_BUDGET_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_RESTART_BUDGET_H_

#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace lockstep::cli {

// RestartBudget decides if and when a dead task may restart: at most `restarts`
// times within any kWindow, after a pause that doubles from kFirstPause to
// kLongestPause while restarts follow each other closely.
//
// Times must come from a clock that never goes back.
//
// Threads: not thread-safe.
class RestartBudget {
 public:
  static constexpr absl::Duration kWindow = absl::Minutes(10);
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
  static constexpr absl::Duration kLongestPause = absl::Seconds(8);

  explicit RestartBudget(int restarts) : restarts_(restarts) {}

  // Takes one restart from the budget and returns its time; nothing if the
  // budget is used up.
  std::optional<absl::Time> Take(absl::Time now);

 private:
  int restarts_;
  std::deque<absl::Time> taken_;  // ascending, within the last kWindow
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_RESTART_BUDGET_H_
