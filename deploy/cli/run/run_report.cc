#include "deploy/cli/run/run_report.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "deploy/cli/status/status_report.h"
#include "deploy/cli/text/shell_words.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

using Logs = std::map<TaskId, LogTail>;
using Verdict = RunOutcome::Verdict;

std::string Describe(const BadEnd& end) {
  std::string text =
      absl::StrCat(end.task.ToString(), " ", end.exit.ToString());
  if (end.forced) absl::StrAppend(&text, " after it was asked to leave");
  if (end.quit) absl::StrAppend(&text, " before the job was done");
  return text;
}

std::string WithLog(const BadEnd& end, const Logs& logs) {
  const auto found = logs.find(end.task);
  if (found == logs.end()) return absl::StrCat(Describe(end), "\n");
  const LogTail& log = found->second;
  if (log.lines.empty()) {
    return absl::StrCat(Describe(end), "; its log is empty: ", log.path, "\n");
  }
  std::string text =
      absl::StrCat(Describe(end), "; the end of ", log.path, ":\n");
  for (const std::string& line : log.lines) {
    absl::StrAppend(&text, "  | ", line, "\n");
  }
  return text;
}

// Returns ": ..." for a task that ended by itself for good. The log of another
// need not say why.
std::string ItsReason(const BadEnd& end, const Logs& logs) {
  const auto log = logs.find(end.task);
  if (!end.exit.permanent() || log == logs.end() ||
      log->second.reason.empty()) {
    return "";
  }
  return absl::StrCat(": ", log->second.reason);
}

// The end of a line: where the log of the task is.
std::string SeeLog(const BadEnd& end, const Logs& logs) {
  const auto found = logs.find(end.task);
  if (found == logs.end()) return "\n";
  return absl::StrCat("; see ", found->second.path, "\n");
}

// True for a task that ended because the chief had told it why the job fails.
bool OnlyHeard(const BadEnd& end, const std::optional<JobStatus>& status,
               const Logs& logs) {
  const auto log = logs.find(end.task);
  return status.has_value() && status->state == JobState::kFailed &&
         !status->reason.empty() && log != logs.end() &&
         absl::StrContains(log->second.reason,
                           absl::string_view(status->reason).substr(0, 60));
}

std::string BadEnds(const RunOutcome& outcome,
                    const std::optional<JobStatus>& status, const Logs& logs) {
  // The exit code is 0 only if the job was done without the tasks that ended
  // badly.
  const bool harmless = outcome.exit_code == 0;
  // A program that fails may take longer to end than those that hear of it.
  std::vector<BadEnd> ends = outcome.bad_ends;
  const auto cause = std::find_if_not(
      ends.begin(), ends.end(),
      [&](const BadEnd& end) { return OnlyHeard(end, status, logs); });
  if (cause != ends.end()) std::rotate(ends.begin(), cause, cause + 1);
  std::string text;
  for (size_t i = 0; i < ends.size(); ++i) {
    const BadEnd& end = ends[i];
    if (harmless) {
      absl::StrAppend(&text, "warning: the job went on without a task: ",
                      Describe(end), ItsReason(end, logs), SeeLog(end, logs));
    } else if (i == 0) {
      absl::StrAppend(&text, WithLog(end, logs));
    } else {
      absl::StrAppend(&text, "then ", Describe(end), SeeLog(end, logs));
    }
  }
  return text;
}

// An evaluator that ended in good order, and yet without a score of the last
// checkpoint.
std::string MissingScore(const RunOutcome& outcome,
                         const std::optional<JobStatus>& status,
                         const Logs& logs) {
  if (outcome.verdict != RunOutcome::Verdict::kDone || !status.has_value() ||
      status->last_checkpoint_step < 0) {
    return "";
  }
  std::string what = " has reported no score";
  if (status->evaluation.has_value()) {
    const int64_t scored = status->evaluation->step;
    if (scored >= status->last_checkpoint_step) return "";
    what = absl::StrCat(" has not scored the last checkpoint, of step ",
                        status->last_checkpoint_step,
                        "; its last score is of step ", scored);
  }
  for (const auto& [task, log] : logs) {
    if (task.type != TaskType::kEvaluator) continue;
    const bool warned = std::any_of(
        outcome.bad_ends.begin(), outcome.bad_ends.end(),
        [&task = task](const BadEnd& end) { return end.task == task; });
    // Its bad end is reported already, and is the reason.
    if (warned) continue;
    return absl::StrCat("warning: ", task.ToString(), what, "; see ", log.path,
                        "\n");
  }
  return "";
}

// Returns "started again: ps 0, worker 1 (2 times); ...".
std::string Restarts(const RunOutcome& outcome) {
  if (outcome.restarts.empty()) return "";
  std::vector<std::string> tasks;
  bool workers = false;
  for (const auto& [task, times] : outcome.restarts) {
    tasks.push_back(task.ToString());
    if (times > 1) absl::StrAppend(&tasks.back(), " (", times, " times)");
    workers = workers || task.type == TaskType::kWorker;
  }
  return absl::StrCat(
      "started again: ", absl::StrJoin(tasks, ", "),
      workers ? "; the table counts a worker's passes from its last start" : "",
      "\n");
}

std::string Progress(const std::optional<JobStatus>& status) {
  if (!status.has_value()) return "before the chief answered";
  return absl::StrCat("step ", status->step, " of ", status->train_steps, ", ",
                      FormatSeconds(status->training_time));
}

// Returns "worker 1: the gradient of ..." for the first bad end, if that task
// ended by itself for good. Empty otherwise.
std::string FirstCause(const RunOutcome& outcome, const Logs& logs) {
  if (outcome.bad_ends.empty()) return "";
  const BadEnd& end = outcome.bad_ends.front();
  const std::string reason = ItsReason(end, logs);
  return reason.empty() ? "" : absl::StrCat(end.task.ToString(), reason);
}

// Returns "; but worker 1 ended ..." for a job that is done, and yet not all of
// the run: exit code 1 must have its reason.
std::string ButOf(const RunOutcome& outcome, const Logs& logs) {
  if (outcome.exit_code == 0 || outcome.bad_ends.empty()) return "";
  const BadEnd& end = outcome.bad_ends.front();
  return absl::StrCat("; but ", Describe(end), ItsReason(end, logs));
}

// A chief that the launcher has stopped can only report the stop.
std::string Reason(const RunOutcome& outcome,
                   const std::optional<JobStatus>& status, const Logs& logs) {
  if (outcome.gave_up) return outcome.reason;
  const bool chief_knows =
      status.has_value() && status->state == JobState::kFailed;
  if (chief_knows && !status->reason.empty()) return Printable(status->reason);
  if (std::string cause = FirstCause(outcome, logs); !cause.empty()) {
    return cause;
  }
  if (!outcome.reason.empty()) return outcome.reason;
  if (!outcome.bad_ends.empty()) return Describe(outcome.bad_ends.front());
  return "the chief ended before the job was done";
}

// The same command would set the checkpoint aside, if it has one of the flags.
absl::string_view HowToGoOn(const Beginning& beginning) {
  if (!beginning.anew()) return "the same command";
  return beginning.step == Beginning::kFresh
             ? "the same command without --fresh"
             : "the same command without --from";
}

// Returns the location of the model and the commands to export or resume it.
std::string Model(const RunOutcome& outcome, const JobStatus& status,
                  const RunPlace& place) {
  if (place.checkpoints.empty() || status.last_checkpoint_step < 0) return "";
  const std::string step = absl::StrCat("step ", status.last_checkpoint_step);
  if (outcome.verdict == Verdict::kDone) {
    return absl::StrCat("model: ", step, "; one file of it: ", place.program,
                        " export --checkpoints ", ShellWord(place.checkpoints),
                        " --out model.safetensors\n");
  }
  // The same command alone would fail again, as of a table that is full.
  return absl::StrCat(
      "last checkpoint: ", step, " in ", place.checkpoints, "; ",
      outcome.verdict == Verdict::kFailed ? "once the cause is removed, " : "",
      HowToGoOn(place.beginning), " goes on from it\n");
}

// True for a run that was stopped, and whose chief failed then.
bool LastStepFailed(const RunOutcome& outcome) {
  return (outcome.verdict == Verdict::kInterrupted ||
          outcome.verdict == Verdict::kStopped) &&
         std::any_of(outcome.bad_ends.begin(), outcome.bad_ends.end(),
                     [](const BadEnd& end) {
                       return end.task.type == TaskType::kChief &&
                              end.exit.permanent();
                     });
}

// Returns "; no checkpoint of step 700, ..." if a signal ended the chief before
// the checkpoint was written, or it could not be written. A job without
// checkpoints misses none.
std::string MissingCheckpoint(const RunOutcome& outcome,
                              const std::optional<JobStatus>& status,
                              const RunPlace& place) {
  if ((!outcome.chief_killed && !LastStepFailed(outcome)) ||
      !status.has_value() || place.checkpoints.empty() ||
      status->last_checkpoint_step >= status->step) {
    return "";
  }
  return absl::StrCat(
      "; no checkpoint of step ", status->step, ": ",
      outcome.chief_killed ? "the chief was killed before it was written"
                           : "it could not be written",
      "; the servers' state ",
      place.state.empty() ? std::string("is gone")
                          : absl::StrCat("stays in ", Printable(place.state)));
}

// Returns the last line without the directory of checkpoints.
std::string LastLine(const RunOutcome& outcome,
                     const std::optional<JobStatus>& status,
                     const std::map<TaskId, LogTail>& logs,
                     const RunPlace& place) {
  const std::string missing = MissingCheckpoint(outcome, status, place);
  switch (outcome.verdict) {
    case Verdict::kDone:
      return absl::StrCat(status.has_value() ? FormatDoneLine(*status)
                                             : "done: before the chief was "
                                               "asked",
                          ButOf(outcome, logs));
    case Verdict::kStopped:
      return absl::StrCat("stopped: ", Progress(status),
                          status.has_value() && !status->reason.empty()
                              ? absl::StrCat("; ", Printable(status->reason))
                              : "",
                          missing);
    case Verdict::kInterrupted:
      return absl::StrCat("interrupted: ", Progress(status), missing);
    case Verdict::kFailed:
      break;
  }
  return absl::StrCat("failed: ", Progress(status), "; ",
                      Reason(outcome, status, logs), missing);
}

}  // namespace

std::string FormatLastLine(const RunOutcome& outcome,
                           const std::optional<JobStatus>& status,
                           const std::map<TaskId, LogTail>& logs,
                           const RunPlace& place) {
  std::string line = LastLine(outcome, status, logs, place);
  const bool early = outcome.verdict == Verdict::kInterrupted ||
                     outcome.verdict == Verdict::kStopped;
  if (early && status.has_value() && status->step > 0 &&
      place.checkpoints.empty() && place.state.empty()) {
    return line + "; nothing of it is kept: set checkpoint.directory";
  }
  if (!status.has_value() || place.checkpoints.empty() ||
      status->last_checkpoint_step < 0) {
    return line;
  }
  // The step stands in the line already if it is the last one.
  const bool last = status->last_checkpoint_step == status->step;
  absl::StrAppend(
      &line, "; checkpoint ",
      last ? "" : absl::StrCat("of step ", status->last_checkpoint_step, " "),
      "in ", Printable(place.checkpoints));
  return line;
}

std::string FormatRunReport(const RunOutcome& outcome,
                            const std::optional<JobStatus>& status,
                            const std::map<TaskId, LogTail>& logs,
                            const RunPlace& place, size_t width) {
  std::string report =
      absl::StrCat(BadEnds(outcome, status, logs),
                   MissingScore(outcome, status, logs), Restarts(outcome));
  if (status.has_value()) {
    absl::StrAppend(&report, FormatWorkerSummary(*status, width));
    if (status->losses.any()) {
      absl::StrAppend(&report, FormatLosses(*status), "\n");
    }
    absl::StrAppend(&report, FormatDeaths(*status, width));
    if (!status->checkpoint_trouble.empty()) {
      absl::StrAppend(&report, "checkpoint trouble: ",
                      Printable(status->checkpoint_trouble), "\n");
    }
    absl::StrAppend(&report, Model(outcome, *status, place));
  }
  return absl::StrCat(report, LastLine(outcome, status, logs, place), "\n");
}

}  // namespace lockstep::cli
