#include "deploy/cli/run/launcher.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/process/process.h"
#include "common/status/status_json.h"
#include "deploy/cli/logs/log_reason.h"
#include "deploy/cli/status/operator_security.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {
namespace {

// Supervisor::OnTime() needs a few calls a second.
constexpr int kTickMillis = 200;
constexpr size_t kTailLines = 10;
constexpr size_t kReadLines = 60;  // a traceback may be long
constexpr size_t kTailColumns = 400;
constexpr std::ptrdiff_t kReasonLines = 10;  // the reason is among the last
constexpr absl::Duration kLookAtLogs = absl::Seconds(5);
constexpr absl::Duration kSlowToLeave = absl::Seconds(3);

// Steady, unlike the wall clock.
absl::Time Now() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

std::vector<TaskId> TasksOf(const std::vector<TaskLaunch>& launches) {
  std::vector<TaskId> tasks;
  for (const TaskLaunch& launch : launches) tasks.push_back(launch.task);
  return tasks;
}

}  // namespace

SignalInbox Launcher::CatchSignals() {
  // SIGCHLD and SIGWINCH only wake the loop.
  return SignalInbox({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGWINCH});
}

Launcher::Launcher(Options options, Terminal& terminal, SignalInbox& signals)
    : options_(std::move(options)),
      terminal_(terminal),
      signals_(signals),
      view_(terminal, Now()),
      supervisor_({.tasks = TasksOf(options_.launches),
                   .chief = options_.chief,
                   .needed_workers = options_.needed_workers,
                   .need_follows_settings = options_.need_follows_settings,
                   .restarts = options_.restarts,
                   .programs = options_.programs,
                   .elastic_programs = options_.elastic_programs,
                   .chief_in_program = options_.chief_in_program,
                   .input_ends = options_.input_ends,
                   .ps_are_mirrors = options_.ps_are_mirrors}) {}

int Launcher::Run() {
  // Tasks need this thread also while its output is blocked.
  terminal_.NeverWait();
  absl::Status started;
  // Not earlier: it starts threads, which must block the signals of signals_.
  if (!options_.operator_tls_dir.empty()) {
    started = UseOperatorCertificate(options_.operator_tls_dir);
  }
  if (started.ok()) started = StartAll();
  if (!started.ok()) {
    // Ends those that did start, before the report says that the run is over.
    processes_.clear();
    return End({.exit_code = kExitFailed,
                .reason = std::string(started.message()),
                .gave_up = true});
  }
  poller_ = std::make_unique<StatusPoller>(options_.chief_address,
                                           StatusPoller::Options());
  Loop();
  // Its thread uses the certificate.
  poller_.reset();
  // Its files go with this run.
  DropOperatorCertificate();
  return End(supervisor_.Outcome());
}

// Writes the result before the run is visibly over: readers may look at once.
int Launcher::End(const RunOutcome& outcome) {
  const std::map<TaskId, LogTail> logs = ReadLogs(outcome);
  const std::optional<JobStatus>& status = view_.status();
  absl::Status written;
  if (!options_.result_path.empty()) {
    const RunResult result = {
        .state = outcome.state(),
        .exit_code = outcome.exit_code,
        .summary = FormatLastLine(outcome, status, logs, options_.place),
        .ended_at = absl::Now()};
    written = WriteTextFile(
        options_.result_path,
        FormatStatusJson(status.value_or(JobStatus()), 2, result) + "\n");
  }
  terminal_.Print(FormatRunReport(outcome, status, logs, options_.place,
                                  terminal_.Columns()));
  if (!written.ok()) terminal_.Print(absl::StrCat(written.message(), "\n"));
  ShowRest(supervisor_.signalled());
  return outcome.exit_code;
}

// A slow reader gets all of the report. A run that was stopped, or is stopped
// now, must end although no reader takes its output.
void Launcher::ShowRest(bool interrupted) {
  const absl::Time deadline =
      interrupted ? Now() + kLastOutput : absl::InfiniteFuture();
  while (!terminal_.Flush() && Now() < deadline) {
    pollfd fds[] = {{signals_.fd(), POLLIN, 0}};
    poll(fds, std::size(fds), kTickMillis);
    if (signals_.TakeStop().has_value()) return;
  }
}

absl::Status Launcher::StartAll() {
  for (const TaskLaunch& launch : options_.launches) {
    // A given --log_dir may have logs of an earlier run.
    MarkNewRun(launch.log_path, absl::Now());
    LOCKSTEP_RETURN_IF_ERROR(Start(launch));
  }
  return absl::OkStatus();
}

absl::Status Launcher::Start(const TaskLaunch& launch) {
  // The log is appended to; messages quote only lines since this start.
  const int64_t log_start = FileSize(launch.log_path);
  std::vector<std::string> args = launch.args;
  std::map<std::string, std::string> environment = launch.environment;
  if (!supervisor_.begun()) {
    args.insert(args.end(), launch.begin_args.begin(), launch.begin_args.end());
    environment.insert(launch.begin_environment.begin(),
                       launch.begin_environment.end());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<TaskProcess> process,
      TaskProcess::Start({.program = launch.program,
                          .args = std::move(args),
                          .environment = std::move(environment),
                          .log_path = launch.log_path}));
  // A start that failed leaves the last lines of the process before it.
  log_starts_[launch.task] = log_start;
  processes_[launch.task] = std::move(process);
  return absl::OkStatus();
}

void Launcher::Restart(TaskId task) {
  for (const TaskLaunch& launch : options_.launches) {
    if (launch.task != task) continue;
    // A task that was due at the same time may have ended the run: see
    // Supervisor::OnStartFailed().
    const absl::Status started = supervisor_.healthy()
                                     ? Start(launch)
                                     : absl::CancelledError("the run ends");
    if (!started.ok()) {
      // Apply() has called this function. The actions of a failure start no
      // task, so that the two do not call each other without end.
      return Apply(supervisor_.OnStartFailed(task, started.message(), Now()));
    }
    view_.OnRestart(task);
  }
}

void Launcher::Loop() {
  while (!supervisor_.finished()) {
    WaitForEvents();
    const absl::Time now = Now();
    TakeSignals(now);
    TakeNews(now);
    Reap(now);
    Apply(supervisor_.OnTime(now));
    CutLogs(now);
    NoteSlowToLeave(now);
    view_.Refresh(now);
    terminal_.Flush();
  }
  // The chief's last answer may have arrived while its process ended.
  TakeNews(Now());
}

void Launcher::CutLogs(absl::Time now) {
  if (now - logs_looked_at_ < kLookAtLogs) return;
  logs_looked_at_ = now;
  for (const TaskLaunch& launch : options_.launches) {
    if (FileSize(launch.log_path) <= options_.log_limit_bytes) continue;
    // On a full volume a later attempt may succeed.
    if (RotateLog(launch.log_path).ok()) log_starts_[launch.task] = 0;
  }
}

bool Launcher::JobIsDone() const {
  return view_.status().has_value() && view_.status()->state == JobState::kDone;
}

// The chief answers no longer, so that the terminal would say nothing.
void Launcher::NoteSlowToLeave(absl::Time now) {
  if (!JobIsDone() || supervisor_.signalled() ||
      done_since_ == absl::InfinitePast()) {
    return;
  }
  done_since_ = std::min(done_since_, now);
  if (now - done_since_ < kSlowToLeave) return;
  done_since_ = absl::InfinitePast();
  std::vector<std::string> tasks;
  for (const auto& [task, process] : processes_) {
    tasks.push_back(task.ToString());
  }
  view_.Note(absl::StrCat(
      "the job is done; waiting for ", absl::StrJoin(tasks, ", "), " to end, ",
      absl::ToInt64Seconds(Supervisor::kLeaveGrace), " s at most"));
}

void Launcher::WaitForEvents() const {
  pollfd fds[] = {{signals_.fd(), POLLIN, 0}, {poller_->event_fd(), POLLIN, 0}};
  poll(fds, std::size(fds), kTickMillis);
}

// The chief's last messages are printed before its end.
void Launcher::TakeNews(absl::Time now) {
  const StatusPoller::News news = poller_->TakeNews();
  if (news.status.has_value()) {
    view_.OnStatus(*news.status, now);
    supervisor_.OnSettings(news.status->settings);
    Apply(supervisor_.OnJobState(news.status->state, now));
  }
  if (news.stop_refused) {
    view_.Note("the chief does not answer");
    Apply(supervisor_.OnStopRefused());
  }
}

void Launcher::Reap(absl::Time now) {
  for (auto it = processes_.begin(); it != processes_.end();) {
    const std::optional<TaskExit> exit = it->second->Poll();
    if (!exit.has_value()) {
      ++it;
      continue;
    }
    // Erased first: the actions below may look for the process, or start the
    // next one in its place.
    const TaskId task = it->first;
    it = processes_.erase(it);
    // Later ends are mostly the effect of the first; the report names them.
    const bool was_healthy = supervisor_.healthy();
    const Supervisor::Actions actions =
        supervisor_.OnTaskExit(task, *exit, now);
    const bool in_good_order = exit->ok() || exit->code == kExitStopped;
    if (was_healthy && !in_good_order) NoteExit(task, *exit);
    Apply(actions);
  }
}

// Takes the reason from the task's log, because the state of the job may not be
// known yet when the task ends.
void Launcher::NoteExit(TaskId task, TaskExit exit) {
  std::string text = absl::StrCat(task.ToString(), " ", exit.ToString());
  // A program that a signal has ended wrote nothing about it.
  const std::string reason = exit.signal == 0 ? ReasonOf(task) : "";
  if (!reason.empty()) absl::StrAppend(&text, ": ", reason);
  if (supervisor_.RestartTime(task).has_value()) {
    absl::StrAppend(&text, "; it will be started again");
  } else if (!supervisor_.healthy()) {
    absl::StrAppend(&text, "; waiting for the others to leave");
  } else if (exit.code != kExitHeld) {
    absl::StrAppend(&text, "; the job goes on");
  }
  view_.Note(text);
}

std::string Launcher::ReasonOf(TaskId task) const {
  for (const TaskLaunch& launch : options_.launches) {
    if (launch.task != task) continue;
    return ReasonIn(ReadLastLines(launch.log_path, log_starts_.at(task),
                                  kTailLines, kTailColumns));
  }
  return "";
}

void Launcher::TakeSignals(absl::Time now) {
  for (const int signal : signals_.TakeAll()) {
    if (!SignalInbox::IsStop(signal)) continue;
    Apply(supervisor_.OnSignal(signal, now));
  }
}

void Launcher::Apply(const Supervisor::Actions& actions) {
  // One line for all tasks that get a signal, instead of one each.
  std::map<int, std::vector<std::string>> signalled;
  for (const SupervisorAction& action : actions) {
    if (action.kind == SupervisorAction::Kind::kAskToStop) {
      view_.Note(absl::StrCat("stopping after this step: ", action.reason,
                              "; Ctrl-C ends it at once"));
      poller_->AskToStop(action.reason);
      continue;
    }
    if (action.kind == SupervisorAction::Kind::kNote) {
      view_.Note(action.reason);
      continue;
    }
    if (action.kind == SupervisorAction::Kind::kStart) {
      Restart(action.task);
      continue;
    }
    const auto found = processes_.find(action.task);
    // It ended in the meantime.
    if (found == processes_.end()) continue;
    found->second->Signal(action.signal);
    signalled[action.signal].push_back(action.task.ToString());
  }
  for (const auto& [signal, tasks] : signalled) {
    const bool late = JobIsDone() && !supervisor_.signalled();
    view_.Note(absl::StrCat(
        "sent SIG", sigabbrev_np(signal), " to ", absl::StrJoin(tasks, ", "),
        late ? ": the job is done, and waits no longer" : ""));
  }
}

std::map<TaskId, LogTail> Launcher::ReadLogs(const RunOutcome& outcome) const {
  std::map<TaskId, LogTail> logs;
  for (const TaskLaunch& launch : options_.launches) {
    LogTail& log = logs[launch.task];
    log.path = launch.log_path;
    const bool bad =
        std::any_of(outcome.bad_ends.begin(), outcome.bad_ends.end(),
                    [&](const BadEnd& end) { return end.task == launch.task; });
    // Only the logs of these are quoted; the others' may be long.
    if (bad) {
      const std::vector<std::string> read = ReadLastLines(
          log.path, log_starts_.at(launch.task), kReadLines, kTailColumns);
      log.lines = EndToShow(read, kTailLines);
      log.reason = ReasonIn(
          {read.end() - std::min(std::ssize(read), kReasonLines), read.end()});
    }
  }
  return logs;
}

}  // namespace lockstep::cli
