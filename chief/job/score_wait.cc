#include "chief/job/score_wait.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

bool ScoreWait::IsOver(const MembershipTable::Member& evaluator,
                       absl::Time now) {
  using State = MembershipTable::State;
  const std::string name = evaluator.task.ToString();
  const std::string& trouble = evaluator.progress.trouble;
  waits_for_ = absl::StrCat(name, " to score step ", step_);
  const std::string& what =
      trouble.empty() ? evaluator.progress.activity : trouble;
  if (!what.empty()) absl::StrAppend(&waits_for_, " (", what, ")");
  if (evaluator.state == State::kAlive) alive_at_ = now;
  if (trouble.empty()) well_at_ = now;
  // A stopped evaluator may be started again; one that left otherwise does not
  // come back.
  if (evaluator.state == State::kLeft &&
      evaluator.leave != LeaveCause::kStopped) {
    why_ = absl::StrCat(name, " has left: ", evaluator.leave_reason);
  } else if (evaluator.progress.cannot_score || now - well_at_ > kTrouble) {
    why_ = absl::StrCat(name, " cannot score it: ", trouble);
  } else if (now - alive_at_ > kGone) {
    why_ = absl::StrCat(name, " is gone");
  }
  return !why_.empty();
}

}  // namespace lockstep::chief
