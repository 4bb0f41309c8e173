#ifndef LOCKSTEP_DEPLOY_CLI_RUN_SUPERVISOR_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_SUPERVISOR_H_

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "common/status/job_status.h"
#include "deploy/cli/run/restart_budget.h"
#include "deploy/cli/tasks/task_exit.h"

namespace lockstep::cli {

// An action that a Supervisor requests.
struct SupervisorAction {
  enum class Kind {
    kAskToStop,  // ask the chief to stop the job; if it
                 // does not answer, call OnStopRefused()
    kSignal,     // send `signal` to the process of `task`
    kStart,      // restart `task`; on failure call OnStartFailed()
    kNote,       // show the line `reason` to the user
  };
  Kind kind = Kind::kSignal;
  TaskId task{};         // for kSignal and kStart
  int signal = 0;        // for kSignal
  std::string reason{};  // for kAskToStop; logged; and for kNote

  bool operator==(const SupervisorAction&) const = default;
};

// An unintended end of a task.
struct BadEnd {
  TaskId task{};
  TaskExit exit{};
  bool forced = false;  // it ended only after a signal from the launcher
  bool quit = false;    // a program that ended in order, but before its job

  bool operator==(const BadEnd&) const = default;
};

// The result of a run.
struct RunOutcome {
  enum class Verdict { kDone, kFailed, kStopped, kInterrupted };
  Verdict verdict = Verdict::kFailed;
  // Exit code of the launcher:
  //
  //   0        done
  //   1        failed
  //   2        failed, because a task refused its flags, files or environment
  //   3        an operator has stopped the job for good
  //   143      another process stopped the run's tasks
  //   128 + n  this process got signal n
  int exit_code = 1;
  std::string reason{};  // for kFailed, beyond `bad_ends`; may be empty
  bool gave_up = false;  // `reason` names the task
  // A signal ended the chief for good, perhaps before the last checkpoint.
  bool chief_killed = false;
  // By time; for kDone those that cost the exit code 0 come first. Those of
  // evaluators are last; the first is the likely cause.
  std::vector<BadEnd> bad_ends{};
  std::map<TaskId, int> restarts{};  // restart counts, by task

  // The state of the job: kDone, kFailed or kStopped.
  JobState state() const {
    if (verdict == Verdict::kDone) return JobState::kDone;
    return verdict == Verdict::kFailed ? JobState::kFailed : JobState::kStopped;
  }
};

// Supervisor decides how long the processes of a run live. Each event returns
// the resulting actions; Supervisor itself starts, signals and calls nothing.
//
//   running -> leaving -> terminating -> killing -> finished
//
// While the run is in `running`, a task that dies of a signal or with an exit
// code of 128 or above is restarted after a short pause, as often as its
// RestartBudget allows; then the run ends. A chief that has stopped its job in
// order is not restarted, nor are workers after the last step.
//
// In `leaving`, tasks have time to end by themselves:
//
//   kLeaveGrace    the job has ended, or a task that it needs has died
//   kStopGrace     after a stop request, or when the launcher gives up
//   kOrphanGrace   a needed task has ended for good and the chief may not know
//                  it, or the chief was killed for good
//   kUnheardGrace  the chief has ended for good before any task could register,
//                  or too few workers are left before the first step
//
// Then the launcher sends SIGTERM, and after kKillGrace SIGKILL. After a
// request or SIGTERM, each report of the chief that it finishes the job begins
// the grace anew: the last checkpoint of a large model takes longer, and the
// chief bounds it by max_wait.
//
// A program of the user that ends with exit code 0 has left the job, unless the
// chief reports within kQuitNotice that the job is over. If too few programs
// are left for a step, the run ends after kQuitGrace. Programs of an elastic
// job may leave once it has begun, because others may come from outside the
// run; before, one must stay. A program that ends with the exit code of a stop
// has failed, unless the chief reports within kQuitGrace that the job finishes
// or is over. If such a program hosts the chief, its end with exit code 0 or
// that of a stop fails the run, unless the chief has said that the job
// finishes.
//
// Times must come from a clock that never goes back.
//
// Threads: not thread-safe.
class Supervisor {
 public:
  static constexpr absl::Duration kLeaveGrace = absl::Seconds(30);
  static constexpr absl::Duration kStopGrace = absl::Seconds(20);
  static constexpr absl::Duration kOrphanGrace = absl::Seconds(5);
  static constexpr absl::Duration kUnheardGrace = absl::Seconds(1);
  // Longer than a chief waits for members that do not come.
  static constexpr absl::Duration kKillGrace = absl::Seconds(15);
  static constexpr absl::Duration kQuitNotice = absl::Seconds(2);
  static constexpr absl::Duration kQuitGrace = absl::Seconds(5);
  // Programs such as timeout(1) may send the same signal twice at once; that
  // counts as one.
  static constexpr absl::Duration kSecondSignal = absl::Milliseconds(500);

  using Actions = std::vector<SupervisorAction>;

  struct Options {
    std::vector<TaskId> tasks{};  // all of them run
    TaskId chief{};               // the task that hosts the chief
    int needed_workers = 1;       // the job cannot step with fewer
    // The job needs a worker for each gradient of a step; the settings in
    // effect may change their number.
    bool need_follows_settings = false;
    int restarts = 0;  // per task within RestartBudget::kWindow; >= 0
    // Workers are programs of the user, whose number is fixed.
    bool programs = false;
    // They are such programs, and join and leave while the job goes on.
    bool elastic_programs = false;
    // The task `chief` is such a program.
    bool chief_in_program = false;
    // Programs end in order before their job when their epochs are over.
    bool input_ends = false;
    // Each ps has the copy of the worker of its index.
    bool ps_are_mirrors = false;
  };

  explicit Supervisor(const Options& options);

  // Handles the end of a process. Ignores unknown or ended tasks.
  Actions OnTaskExit(TaskId task, TaskExit exit, absl::Time now);

  // Handles the failure to restart a task, with the reason: the run ends. The
  // caller must then not start other tasks of the same Actions, and must call
  // this for each of them.
  Actions OnStartFailed(TaskId task, absl::string_view reason, absl::Time now);

  // Handles a state of the job from the chief.
  Actions OnJobState(JobState state, absl::Time now);

  // Handles the settings in effect, from the chief.
  void OnSettings(const Settings& settings);

  // Handles a signal that stops the launcher: the first one stops the job in
  // order; one that comes kSecondSignal or more later ends all at once.
  // After the end of the job, or of a task that it needs, a signal shortens the
  // time to leave, and changes no result; nor does one without which the job
  // would be done, too.
  Actions OnSignal(int signal, absl::Time now);

  // Handles that the chief did not answer a stop request.
  Actions OnStopRefused();

  // Handles the passing of time; must be called a few times a second.
  Actions OnTime(absl::Time now);

  // True if no process is left and none is about to start.
  bool finished() const { return running_.empty() && due_.empty(); }

  // Returns the time of a dead task's restart; nothing if it does not restart.
  std::optional<absl::Time> RestartTime(TaskId task) const;

  // True once the chief has reported a state beyond kStarting. Until then a
  // restarted chief must get --fresh or --from again: its predecessor may have
  // ended before it set older checkpoints and state aside.
  bool begun() const { return begun_; }

  // True until an event has begun to end the run.
  bool healthy() const { return phase_ == Phase::kRunning; }

  // True once a signal has come.
  bool signalled() const { return stop_signal_ != 0; }

  // Valid only when finished().
  RunOutcome Outcome() const;

 private:
  enum class Phase { kRunning, kLeaving, kTerminating, kKilling };
  enum class Fate { kNone, kDone, kStopped, kFailed };  // of the job
  struct End {
    TaskId task;
    TaskExit exit;
    int sent_signal = 0;     // the launcher's last signal, 0 if none
    bool restarted = false;  // it was restarted, so its end did no harm
    bool quit = false;       // as in BadEnd
    bool late = false;       // the job ended, or lacked a task that it needs
    bool wanted = false;     // the launcher had given the job up
  };

  // A shell reports a program that signal n has ended as 128 + n.
  static constexpr int kSignalBase = 128;

  // True for an orderly end before the job was done.
  static bool IsStopped(TaskExit exit);
  bool MayRestart(TaskId task, TaskExit exit) const;
  void OnLoss(TaskId task, TaskExit exit, absl::Time now);
  Actions GiveUp(absl::string_view reason, absl::Time now);
  Actions Restart(absl::Time now);
  void MarkRestarted(TaskId task);
  void OnChiefExit(TaskExit exit, absl::Time now);
  void OnWorkerDeath(TaskId task, TaskExit exit, absl::Time now);
  // True for a mirror without which the job goes on, as without its worker.
  bool IsSpare(TaskId task) const {
    return ps_are_mirrors_ && elastic_ && begun_ &&
           task.type == TaskType::kPs && task.index > 0;
  }
  // The number by which the chief knows it.
  int NumberOf(TaskId worker) const {
    return worker.index + (chief_computes_ ? 1 : 0);
  }
  // True once the chief has said that no further step is needed.
  bool JobIsOver() const {
    return job_state_ == JobState::kFinishing || IsFinal(job_state_);
  }
  int AbleWorkers() const;
  bool TakesPart(int worker) const {
    return std::find(workers_.begin(), workers_.end(), worker) !=
           workers_.end();
  }
  Actions OnQuits(absl::Time now);
  void OnUnheardStops(absl::Time now);
  Actions NoteQuits(absl::Time now);
  void LeaveUntil(absl::Time deadline);
  void WaitForLastCheckpoint(absl::Time now);
  Actions Terminate(absl::Time now);
  Actions SignalAll(int signal);
  Actions SignalOne(TaskId task, int signal);
  RunOutcome::Verdict Verdict() const;
  int FailureCode(const RunOutcome& outcome) const;
  bool IsReplaced(const End& end) const;
  bool IsBad(const End& end, RunOutcome::Verdict verdict) const;

  const TaskId chief_;
  const bool workers_serve_;   // there is no ps: each has a mirror
  const bool chief_computes_;  // it is worker 0 of the job then
  const bool need_follows_settings_;
  const int restarts_;
  const bool programs_;
  const bool elastic_programs_;
  const bool chief_in_program_;
  const bool input_ends_;
  const bool ps_are_mirrors_;

  std::map<TaskId, int> running_;     // last signal sent
  std::map<TaskId, absl::Time> due_;  // restarts, only while running
  std::map<TaskId, RestartBudget> budgets_;
  std::map<TaskId, int> restarted_;  // counts
  std::vector<End> ends_;            // by time
  int needed_workers_;
  std::vector<int> workers_;    // numbers of those that take part
  std::set<int> dead_workers_;  // for good; by number
  bool elastic_ = false;
  std::map<TaskId, absl::Time> quits_;  // of programs, with exit code 0
  // The ends of programs with the exit code of a stop, by time.
  std::vector<std::pair<End, absl::Time>> stops_;
  Phase phase_ = Phase::kRunning;
  absl::Time deadline_ = absl::InfiniteFuture();  // end of `phase_`
  JobState job_state_ = JobState::kUnknown;
  bool begun_ = false;
  Fate fate_ = Fate::kNone;
  int stop_signal_ = 0;       // first signal received
  absl::Time stop_time_;      // time of that signal
  bool late_signal_ = false;  // the result stood already when it came
  bool held_ = false;         // an operator has stopped the job for good
  bool hard_stop_ = false;    // a second signal came
  bool broken_ = false;       // a task that the job needs has ended
  bool gave_up_ = false;      // a task had no restarts left, or programs left
  // The program that hosts the chief ended with exit code 0 or that of a stop,
  // and nothing was known of the job's end.
  bool chief_quit_ = false;
  std::string reason_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_SUPERVISOR_H_
