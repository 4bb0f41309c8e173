// The result of a run, from the ends of its tasks.

#include <signal.h>

#include <algorithm>

#include "common/process/process.h"
#include "deploy/cli/run/supervisor.h"

namespace lockstep::cli {

RunOutcome Supervisor::Outcome() const {
  RunOutcome outcome;
  outcome.verdict = Verdict();
  outcome.restarts = restarted_;
  int lost = 0;  // of a job that is done, and not replaced by others
  for (const End& end : ends_) {
    if (!IsBad(end, outcome.verdict)) continue;
    const bool first =
        outcome.verdict == RunOutcome::Verdict::kDone && !IsReplaced(end);
    outcome.bad_ends.insert(
        first ? outcome.bad_ends.begin() + lost++ : outcome.bad_ends.end(),
        {end.task, end.exit, end.sent_signal != 0, end.quit});
  }
  outcome.chief_killed =
      std::any_of(ends_.begin(), ends_.end(), [this](const End& end) {
        return end.task == chief_ && end.exit.signal != 0 && !end.restarted;
      });
  // A job goes on without its evaluator, which therefore ends no run.
  std::stable_partition(
      outcome.bad_ends.begin(), outcome.bad_ends.end(),
      [](const BadEnd& end) { return end.task.type != TaskType::kEvaluator; });
  switch (outcome.verdict) {
    case RunOutcome::Verdict::kDone:
      outcome.exit_code = lost > 0 ? 1 : 0;
      break;
    case RunOutcome::Verdict::kStopped:
      outcome.exit_code = held_ ? kExitHeld : kExitStopped;
      break;
    case RunOutcome::Verdict::kInterrupted:
      outcome.exit_code = kSignalBase + stop_signal_;
      break;
    case RunOutcome::Verdict::kFailed:
      outcome.reason = reason_;
      outcome.gave_up =
          gave_up_ || (chief_quit_ && fate_ == Fate::kNone && !broken_);
      outcome.exit_code = FailureCode(outcome);
      break;
  }
  return outcome;
}

// The code of the task that is the likely cause.
int Supervisor::FailureCode(const RunOutcome& outcome) const {
  const bool refused =
      !outcome.gave_up && !outcome.bad_ends.empty() &&
      outcome.bad_ends.front().exit == TaskExit{.code = kExitUsage};
  return refused ? kExitUsage : kExitFailed;
}

// A signal that came too late to have an effect does not count: neither one
// after the end, nor one while the chief wrote the last checkpoint.
RunOutcome::Verdict Supervisor::Verdict() const {
  if (fate_ == Fate::kDone && !gave_up_ &&
      (job_state_ == JobState::kDone || !chief_in_program_)) {
    return RunOutcome::Verdict::kDone;
  }
  if (held_ && !hard_stop_ && fate_ == Fate::kStopped) {
    return RunOutcome::Verdict::kStopped;
  }
  if (stop_signal_ != 0 && !late_signal_) {
    return RunOutcome::Verdict::kInterrupted;
  }
  if (gave_up_) return RunOutcome::Verdict::kFailed;
  if (fate_ == Fate::kDone) return RunOutcome::Verdict::kDone;
  if (fate_ == Fate::kStopped) return RunOutcome::Verdict::kStopped;
  return RunOutcome::Verdict::kFailed;
}

// False for a program of the user, which may have been busy with results of its
// own, that failed or was ended by force after the last step.
bool Supervisor::IsReplaced(const End& end) const {
  if (end.task == chief_) return false;
  if (end.task.type == TaskType::kPs) return IsSpare(end.task);
  return end.task.type != TaskType::kWorker || !programs_ ||
         (end.sent_signal == 0 && !end.late);
}

// A task that ended as requested did not end badly.
bool Supervisor::IsBad(const End& end, RunOutcome::Verdict verdict) const {
  if (end.restarted) return false;
  if (verdict == RunOutcome::Verdict::kDone) {
    return !end.exit.ok() || end.sent_signal != 0 || end.quit;
  }
  if (end.exit.ok()) return end.quit && gave_up_;
  if (end.exit.signal == SIGKILL && end.sent_signal == SIGKILL) {
    return !hard_stop_;
  }
  if (end.sent_signal != 0) {
    return !IsStopped(end.exit) && end.exit.signal != SIGTERM;
  }
  if (end.wanted && IsStopped(end.exit)) return false;
  return verdict == RunOutcome::Verdict::kFailed || !IsStopped(end.exit);
}

}  // namespace lockstep::cli
