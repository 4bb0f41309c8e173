#ifndef LOCKSTEP_DEPLOY_CLI_RUN_RESTART_BUDGET_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_RESTART_BUDGET_H_

#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace lockstep {

// RestartBudget decides whether and when one task that died may start again:
// at most `restarts` times within any kWindow, after a pause that doubles from
// kFirstPause to kLongestPause while the restarts come close together.
//
// Time may come from any clock that never goes back.
class RestartBudget {
 public:
  static constexpr absl::Duration kWindow = absl::Minutes(10);
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
  static constexpr absl::Duration kLongestPause = absl::Seconds(8);

  explicit RestartBudget(int restarts) : restarts_(restarts) {}

  // Takes one restart from the budget and says when it is due; nothing when
  // the budget is used up.
  std::optional<absl::Time> Take(absl::Time now);

 private:
  int restarts_;
  std::deque<absl::Time> taken_;  // ascending, of the last kWindow
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_RESTART_BUDGET_H_
