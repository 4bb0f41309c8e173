#include "chief/job/score_wait.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

// The time between two lines of the log about the wait.
constexpr absl::Duration kReportEvery = absl::Seconds(10);

}  // namespace

bool ScoreWait::GoOn(JobContext& context, int64_t scored) {
  const absl::Time now = context.now;
  const bool is_scored = scored >= step_;
  const bool over =
      !is_scored && IsOver(context.members.Get({TaskType::kEvaluator, 0}), now);
  if (over) {
    Warn(context.out, absl::StrCat("step ", step_, " stays unscored: ", why_));
    context.out.push_back(ScoreTroubled{why_});
  }
  if (is_scored || over) {
    context.out.push_back(Waits{});
    return false;
  }
  context.out.push_back(Waits{{{"the end", waits_for_, began_}}});
  if (now - said_ > kReportEvery) {
    said_ = now;
    Info(context.out, absl::StrCat("waiting for ", waits_for_));
  }
  return true;
}

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
  } else if ((evaluator.progress.cannot_score && now - began_ > kNotices) ||
             now - well_at_ > kTrouble) {
    why_ = absl::StrCat(name, " cannot score it: ", trouble);
  } else if (now - alive_at_ > kGone) {
    why_ = absl::StrCat(name, " is gone");
  }
  return !why_.empty();
}

}  // namespace lockstep::chief
