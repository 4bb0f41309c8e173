#include "deploy/cli/run/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/process/process.h"

namespace lockstep::cli {
namespace {

constexpr char kQuitsEarly[] =
    " ended with exit code 0 before the job was done: a program must join the "
    "job and loop until the job ends, in Python over its Worker's steps(), in "
    "C++ with Session::Next() or ServedVariables::pass()";
constexpr int kWindowMinutes = 10;
static_assert(RestartBudget::kWindow == absl::Minutes(kWindowMinutes));

}  // namespace

Supervisor::Supervisor(const Options& options)
    : chief_(options.chief),
      workers_serve_(std::none_of(
          options.tasks.begin(), options.tasks.end(),
          [](const TaskId& task) { return task.type == TaskType::kPs; })),
      chief_computes_(workers_serve_ && chief_.type == TaskType::kChief),
      need_follows_settings_(options.need_follows_settings),
      restarts_(options.restarts),
      programs_(options.programs),
      elastic_programs_(options.elastic_programs),
      chief_in_program_(options.chief_in_program),
      input_ends_(options.input_ends),
      ps_are_mirrors_(options.ps_are_mirrors),
      needed_workers_(options.needed_workers) {
  for (const TaskId& task : options.tasks) {
    running_[task] = 0;
    budgets_.emplace(task, RestartBudget(options.restarts));
    if (task.type == TaskType::kWorker) workers_.push_back(NumberOf(task));
  }
  if (chief_computes_) workers_.push_back(0);
}

bool Supervisor::IsStopped(TaskExit exit) {
  return exit.signal == 0 &&
         (exit.code == kExitStopped || exit.code == kExitHeld);
}

Supervisor::Actions Supervisor::OnTaskExit(TaskId task, TaskExit exit,
                                           absl::Time now) {
  const auto found = running_.find(task);
  if (found == running_.end()) return {};
  ends_.push_back({task, exit, found->second});
  ends_.back().late = JobIsOver() || broken_;
  ends_.back().wanted = gave_up_;
  running_.erase(found);

  if (!MayRestart(task, exit)) {
    OnLoss(task, exit, now);
    return {};
  }
  const std::optional<absl::Time> due = budgets_.at(task).Take(now);
  if (due.has_value()) {
    due_[task] = *due;
    return {};
  }
  OnLoss(task, exit, now);
  return GiveUp(
      absl::StrCat(task.ToString(), " died ", restarts_ + 1, " times within ",
                   kWindowMinutes, " minutes, and --restarts allows ",
                   restarts_, "; the last time it ", exit.ToString()),
      now);
}

// A chief that ends in order after a stop request has asked all others to end,
// too.
bool Supervisor::MayRestart(TaskId task, TaskExit exit) const {
  if (restarts_ <= 0 || phase_ != Phase::kRunning) return false;
  // A program that ended by itself with a small code would do so again.
  if (exit.signal == 0 && exit.code < kSignalBase) return false;
  if (task == chief_ && IsStopped(exit)) return false;
  // After the last step the job needs no worker, but for the last checkpoint it
  // needs its chief and its servers, which may be in workers' processes.
  return task == chief_ || workers_serve_ || task.type != TaskType::kWorker ||
         job_state_ != JobState::kFinishing;
}

void Supervisor::OnLoss(TaskId task, TaskExit exit, absl::Time now) {
  const bool died = !exit.ok() && !IsStopped(exit);
  if (task == chief_) {
    OnChiefExit(exit, now);
  } else if (task.type == TaskType::kPs && !IsSpare(task)) {
    broken_ = broken_ || died;
    if (phase_ == Phase::kRunning) {
      LeaveUntil(now + (exit.permanent() ? kOrphanGrace : kLeaveGrace));
    }
  } else if (task.type != TaskType::kEvaluator && died) {
    OnWorkerDeath(task, exit, now);
  } else if (task.type == TaskType::kWorker) {
    if (exit.ok() && (programs_ || elastic_programs_)) {
      quits_[task] = now;
    } else if (programs_) {
      stops_.push_back({{task, exit}, now});
    }
  }
}

// The user's code may end with any exit code, that of a stop too.
void Supervisor::OnUnheardStops(absl::Time now) {
  if (JobIsOver()) return;
  while (!stops_.empty() && now >= stops_.front().second + kQuitGrace) {
    const End end = stops_.front().first;
    stops_.erase(stops_.begin());
    OnWorkerDeath(end.task, end.exit, now);
  }
}

// Those that an elastic job has removed do not count; those that have joined it
// from outside the run do.
int Supervisor::AbleWorkers() const {
  return static_cast<int>(std::count_if(
      workers_.begin(), workers_.end(),
      [this](int worker) { return !dead_workers_.contains(worker); }));
}

Supervisor::Actions Supervisor::OnQuits(absl::Time now) {
  if (JobIsOver()) return {};
  if (elastic_programs_ && begun_) return {};
  // Programs that quit have not died, so that AbleWorkers() counts them.
  int left = AbleWorkers();
  for (const auto& [task, time] : quits_) left -= TakesPart(NumberOf(task));
  const int needed = elastic_programs_ ? 1 : needed_workers_;
  if (left >= needed) return NoteQuits(now);
  if (quits_.empty()) return {};
  absl::Time last = absl::InfinitePast();
  // The grace begins anew with each of them.
  for (const auto& [task, time] : quits_) last = std::max(last, time);
  if (now < last + kQuitGrace) return {};
  for (End& end : ends_) end.quit = end.quit || quits_.contains(end.task);
  return GiveUp(absl::StrCat("the program of ",
                             quits_.begin()->first.ToString(), kQuitsEarly),
                now);
}

Supervisor::Actions Supervisor::NoteQuits(absl::Time now) {
  Actions actions;
  // Then an early end is the rule.
  if (input_ends_) return actions;
  for (End& end : ends_) {
    const auto found = quits_.find(end.task);
    if (found == quits_.end() || end.quit || now < found->second + kQuitNotice)
      continue;
    end.quit = true;
    actions.push_back(
        {.kind = SupervisorAction::Kind::kNote,
         .task = end.task,
         .reason = absl::StrCat("the program of ", end.task.ToString(),
                                kQuitsEarly, "; the job goes on without it")});
  }
  return actions;
}

// The chief, if there is one, saves its state and tells the others to end.
Supervisor::Actions Supervisor::GiveUp(absl::string_view reason,
                                       absl::Time now) {
  gave_up_ = true;
  reason_ = std::string(reason);
  if (!running_.contains(chief_)) return Terminate(now);
  LeaveUntil(now + kStopGrace);
  return {{.kind = SupervisorAction::Kind::kAskToStop, .reason = reason_}};
}

Supervisor::Actions Supervisor::OnStartFailed(TaskId task,
                                              absl::string_view reason,
                                              absl::Time now) {
  // Restart() has counted it as running, and its last end as harmless.
  running_.erase(task);
  const auto count = restarted_.find(task);
  if (count != restarted_.end() && --count->second == 0) {
    restarted_.erase(count);
  }
  const auto last =
      std::find_if(ends_.rbegin(), ends_.rend(),
                   [&](const End& end) { return end.task == task; });
  if (last != ends_.rend()) last->restarted = false;
  // Another task, due at the same time, has ended the run already.
  if (!healthy()) return {};
  return GiveUp(
      absl::StrCat(task.ToString(), " cannot be started again: ", reason), now);
}

Supervisor::Actions Supervisor::Restart(absl::Time now) {
  Actions actions;
  for (auto it = due_.begin(); it != due_.end();) {
    if (now < it->second) {
      ++it;
      continue;
    }
    const TaskId task = it->first;
    it = due_.erase(it);
    // Before it is started, so that finished() is false in between.
    running_[task] = 0;
    MarkRestarted(task);
    actions.push_back({.kind = SupervisorAction::Kind::kStart, .task = task});
  }
  return actions;
}

void Supervisor::MarkRestarted(TaskId task) {
  ++restarted_[task];
  // Also earlier ends: each of them had its restart.
  for (End& end : ends_) end.restarted = end.restarted || end.task == task;
}

std::optional<absl::Time> Supervisor::RestartTime(TaskId task) const {
  const auto found = due_.find(task);
  if (found == due_.end()) return std::nullopt;
  return found->second;
}

// Without the chief the other tasks end by themselves, if it has told them or
// they have no chief to wait for. One that was killed has told none. If the
// launcher stops the run, tasks that may not have reached a chief yet get less
// time, too, because they would wait in vain.
void Supervisor::OnChiefExit(TaskExit exit, absl::Time now) {
  held_ = exit.signal == 0 && exit.code == kExitHeld;
  chief_quit_ =
      chief_in_program_ && (exit.ok() || IsStopped(exit)) && !JobIsOver();
  if (chief_quit_ && reason_.empty()) {
    reason_ = absl::StrCat(
        "the program of ", chief_.ToString(),
        exit.ok() ? kQuitsEarly
                  : absl::StrCat(" ", exit.ToString(),
                                 ", and its chief had not stopped the job"));
  }
  // The chief's last state says more than its exit code, if it has come. After
  // such an end only a state that is still on its way can say that the job is
  // done, because the exit code is that of the user's program.
  if (fate_ == Fate::kNone && !chief_quit_) {
    fate_ = exit.ok()                     ? Fate::kDone
            : IsStopped(exit) && !broken_ ? Fate::kStopped
                                          : Fate::kFailed;
  }
  if (phase_ == Phase::kRunning) {
    const bool unheard = exit.permanent() && job_state_ == JobState::kUnknown;
    const bool killed = !exit.ok() && !exit.permanent() && !IsStopped(exit);
    LeaveUntil(now + (unheard       ? kUnheardGrace
                      : killed      ? kOrphanGrace
                      : chief_quit_ ? kQuitGrace
                                    : kLeaveGrace));
  } else if (phase_ == Phase::kLeaving && (stop_signal_ != 0 || gave_up_)) {
    LeaveUntil(std::min(deadline_, now + kOrphanGrace));
  }
}

// The chief may have told the workers to leave before the launcher knows it; so
// even if too few workers are left, the launcher waits a moment for the chief's
// state.
void Supervisor::OnWorkerDeath(TaskId task, TaskExit exit, absl::Time now) {
  dead_workers_.insert(NumberOf(task));
  const int left = AbleWorkers();
  // An elastic job takes out a worker that has left with its reason. One that
  // was killed it takes out only if its mirror is gone, too.
  const bool taken_out =
      elastic_ && (exit.permanent() || workers_serve_ || IsSpare(task));
  const int needed = taken_out ? 1 : needed_workers_;
  if (left >= needed || phase_ != Phase::kRunning ||
      job_state_ == JobState::kFinishing) {
    return;
  }
  broken_ = true;
  // Should the job be done all the same, it needed no further step.
  for (End& end : ends_) end.late = end.late || end.task == task;
  reason_ = absl::StrCat(
      task.ToString(), " ", exit.ToString(), "; a step needs ", needed,
      needed == 1 ? " worker" : " workers", "; left: ", left);
  const bool trains = job_state_ == JobState::kTraining;
  LeaveUntil(now + (trains ? kOrphanGrace : kUnheardGrace));
}

Supervisor::Actions Supervisor::OnJobState(JobState state, absl::Time now) {
  job_state_ = state;
  begun_ =
      begun_ || (state != JobState::kUnknown && state != JobState::kStarting);
  if (state == JobState::kFinishing) WaitForLastCheckpoint(now);
  if (!IsFinal(state) || fate_ != Fate::kNone) return {};
  // With broken_ the launcher stopped the job, because a needed task had ended:
  // the job has failed.
  fate_ = state == JobState::kDone                  ? Fate::kDone
          : state == JobState::kStopped && !broken_ ? Fate::kStopped
                                                    : Fate::kFailed;
  const bool may_leave = phase_ == Phase::kRunning ||
                         (phase_ == Phase::kLeaving && stop_signal_ == 0);
  if (may_leave) LeaveUntil(now + kLeaveGrace);
  return {};
}

void Supervisor::OnSettings(const Settings& settings) {
  // 0: the chief has not said it.
  if (!need_follows_settings_ || settings.replicas_to_aggregate <= 0) return;
  // Only an elastic job names them.
  if (!settings.workers.empty()) {
    elastic_ = true;
    workers_ = settings.workers;
    // One that is named again has come back, from outside the run.
    std::erase_if(dead_workers_,
                  [this](int worker) { return !TakesPart(worker); });
  }
  // A few workers may share many gradients.
  needed_workers_ = static_cast<int>(
      std::clamp<int64_t>(settings.replicas_to_aggregate, 1,
                          std::max<int64_t>(1, std::ssize(workers_))));
}

Supervisor::Actions Supervisor::OnSignal(int signal, absl::Time now) {
  if (stop_signal_ != 0) {
    if (now - stop_time_ < kSecondSignal) return {};
    hard_stop_ = true;
    phase_ = Phase::kKilling;
    deadline_ = absl::InfiniteFuture();
    return SignalAll(SIGKILL);
  }
  stop_signal_ = signal;
  stop_time_ = now;
  late_signal_ = fate_ != Fate::kNone || broken_ || gave_up_ || chief_quit_;
  if (phase_ == Phase::kTerminating || phase_ == Phase::kKilling) return {};
  if (!running_.contains(chief_)) return Terminate(now);
  LeaveUntil(std::min(deadline_, now + kStopGrace));
  // The chief is about to end, and need not answer.
  if (fate_ != Fate::kNone) {
    return {{.kind = SupervisorAction::Kind::kNote,
             .reason = "the job has ended; waiting for the tasks to leave; "
                       "Ctrl-C ends them at once"}};
  }
  return {{.kind = SupervisorAction::Kind::kAskToStop,
           .reason = "the launcher was stopped"}};
}

Supervisor::Actions Supervisor::OnStopRefused() {
  // In later phases all tasks have their signal already.
  if (phase_ != Phase::kLeaving) return {};
  return SignalOne(chief_, SIGTERM);
}

Supervisor::Actions Supervisor::OnTime(absl::Time now) {
  if (phase_ == Phase::kRunning) {
    Actions actions = OnQuits(now);
    OnUnheardStops(now);
    // Each of the two calls may have ended the run, and then no task restarts.
    if (!healthy()) return actions;
    for (SupervisorAction& action : Restart(now)) {
      actions.push_back(std::move(action));
    }
    return actions;
  }
  if (now < deadline_ || finished()) return {};
  if (phase_ == Phase::kLeaving) return Terminate(now);
  phase_ = Phase::kKilling;
  // After SIGKILL there is nothing to wait for but the ends.
  deadline_ = absl::InfiniteFuture();
  return SignalAll(SIGKILL);
}

void Supervisor::LeaveUntil(absl::Time deadline) {
  phase_ = Phase::kLeaving;
  deadline_ = deadline;
  // Restarts that are due would only be ended again.
  due_.clear();
}

// A chief that answers is alive. One that is ended now leaves no checkpoint of
// its last step.
void Supervisor::WaitForLastCheckpoint(absl::Time now) {
  // The answer may come from a chief that has ended since.
  if (!running_.contains(chief_)) return;
  if (phase_ == Phase::kLeaving && (stop_signal_ != 0 || gave_up_)) {
    deadline_ = std::max(deadline_, now + kStopGrace);
  } else if (phase_ == Phase::kTerminating) {
    deadline_ = std::max(deadline_, now + kKillGrace);
  }
}

Supervisor::Actions Supervisor::Terminate(absl::Time now) {
  phase_ = Phase::kTerminating;
  deadline_ = now + kKillGrace;
  due_.clear();
  return SignalAll(SIGTERM);
}

Supervisor::Actions Supervisor::SignalAll(int signal) {
  Actions actions;
  for (auto& [task, sent] : running_) {
    sent = signal;
    actions.push_back({.task = task, .signal = signal});
  }
  return actions;
}

Supervisor::Actions Supervisor::SignalOne(TaskId task, int signal) {
  const auto found = running_.find(task);
  if (found == running_.end()) return {};
  found->second = signal;
  return {{.task = task, .signal = signal}};
}

}  // namespace lockstep::cli
