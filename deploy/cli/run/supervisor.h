#ifndef LOCKSTEP_DEPLOY_CLI_RUN_SUPERVISOR_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_SUPERVISOR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "deploy/cli/run/restart_budget.h"
#include "deploy/cli/status/job_status.h"
#include "deploy/cli/tasks/task_exit.h"

namespace lockstep {

// What a Supervisor wants done.
struct SupervisorAction {
  enum class Kind {
    kAskToStop,  // ask the chief to stop the job; then OnStopRefused() if it
                 // does not answer
    kSignal,     // send `signal` to the process of `task`
    kStart,      // start `task` again; then OnStartFailed() if that fails
  };
  Kind kind = Kind::kSignal;
  TaskId task{};         // of kSignal and kStart
  int signal = 0;        // of kSignal
  std::string reason{};  // of kAskToStop, for the logs

  bool operator==(const SupervisorAction&) const = default;
};

// The end of a task that was not meant to be.
struct BadEnd {
  TaskId task{};
  TaskExit exit{};
  bool forced = false;  // it overstayed until we sent a signal

  bool operator==(const BadEnd&) const = default;
};

// How a run went.
struct RunOutcome {
  enum class Verdict { kDone, kFailed, kStopped, kInterrupted };
  Verdict verdict = Verdict::kFailed;
  // For the launcher to leave with: 0 done, 1 failed, 2 failed since a task
  // refused its flags, files or environment, 3 an operator has stopped the job
  // for good, 143 its tasks were stopped by somebody else, 128 + n this process
  // got signal n.
  int exit_code = 1;
  std::string reason{};  // of kFailed, beyond `bad_ends`; may be empty
  bool gave_up = false;  // `reason` says on which task
  std::vector<BadEnd> bad_ends{};    // by time: the first is the likely cause
  std::map<TaskId, int> restarts{};  // of tasks that were started again

  // Of the job, in one word: kDone, kFailed or kStopped.
  JobState state() const {
    if (verdict == Verdict::kDone) return JobState::kDone;
    return verdict == Verdict::kFailed ? JobState::kFailed : JobState::kStopped;
  }
};

// Supervisor decides how long the processes of a run live. It is told what
// happens and answers what to do; it starts, signals and asks nobody itself.
//
//   running -> leaving -> terminating -> killing -> finished
//
// While it runs, a task that dies of a signal or with an exit code of 128 or
// above is started again after a short pause, as often as its RestartBudget
// allows; the run ends when that is used up. Not started again are a chief that
// has stopped its job in good order, and workers once the last step is made.
//
// In `leaving` tasks are given time to end by themselves: kLeaveGrace when the
// job has ended or a task has died that it cannot do without, kStopGrace when
// we were asked to stop or gave up. It is kOrphanGrace after a task has ended
// for good that the job needs, of which the chief may not know, and
// kUnheardGrace after a chief that has ended for good before anybody heard of
// it. Then comes SIGTERM, and kKillGrace later SIGKILL.
//
// Time may come from any clock that never goes back.
class Supervisor {
 public:
  static constexpr absl::Duration kLeaveGrace = absl::Seconds(30);
  static constexpr absl::Duration kStopGrace = absl::Seconds(20);
  static constexpr absl::Duration kOrphanGrace = absl::Seconds(5);
  static constexpr absl::Duration kUnheardGrace = absl::Seconds(1);
  static constexpr absl::Duration kKillGrace = absl::Seconds(10);
  // Programs such as timeout(1) may send the same signal twice at once; that is
  // one wish.
  static constexpr absl::Duration kSecondSignal = absl::Milliseconds(500);

  using Actions = std::vector<SupervisorAction>;

  struct Options {
    std::vector<TaskId> tasks{};  // all of them run
    TaskId chief{};               // the task that hosts the chief
    int needed_workers = 1;       // with fewer the job cannot make a step
    int restarts = 0;  // of each task within RestartBudget::kWindow; >= 0
  };

  explicit Supervisor(const Options& options);

  // A process has ended. A task that is unknown or gone is ignored.
  Actions OnTaskExit(TaskId task, TaskExit exit, absl::Time now);

  // A task cannot be started again, for the reason given.
  Actions OnStartFailed(TaskId task, absl::string_view reason, absl::Time now);

  // The chief has said how the job stands.
  Actions OnJobState(JobState state, absl::Time now);

  // The launcher got SIGINT, SIGTERM or SIGHUP: the first one stops the job in
  // good order, one that comes kSecondSignal or more later ends everything at
  // once.
  Actions OnSignal(int signal, absl::Time now);

  // The chief did not answer when asked to stop.
  Actions OnStopRefused();

  // Time has passed; call a few times a second.
  Actions OnTime(absl::Time now);

  // True when no process is left, nor will be started.
  bool finished() const { return running_.empty() && due_.empty(); }

  // When a task that has died starts again; nothing if it does not.
  std::optional<absl::Time> RestartTime(TaskId task) const;

  // True until something has begun to end the run.
  bool healthy() const { return phase_ == Phase::kRunning; }

  // Meaningful once finished.
  RunOutcome Outcome() const;

 private:
  enum class Phase { kRunning, kLeaving, kTerminating, kKilling };
  enum class Fate { kNone, kDone, kStopped, kFailed };  // of the job
  struct End {
    TaskId task;
    TaskExit exit;
    int sent_signal = 0;     // the last one from us, 0 if none
    bool restarted = false;  // and so made up for
  };

  bool MayRestart(TaskId task, TaskExit exit) const;
  void OnLoss(TaskId task, TaskExit exit, absl::Time now);
  Actions GiveUp(absl::string_view reason, absl::Time now);
  Actions Restart(absl::Time now);
  void MarkRestarted(TaskId task);
  void OnChiefExit(TaskExit exit, absl::Time now);
  void OnWorkerDeath(absl::Time now);
  void LeaveUntil(absl::Time deadline);
  Actions Terminate(absl::Time now);
  Actions SignalAll(int signal);
  Actions SignalOne(TaskId task, int signal);
  RunOutcome::Verdict Verdict() const;
  int FailureCode(const RunOutcome& outcome) const;
  bool IsBad(const End& end, RunOutcome::Verdict verdict) const;

  const TaskId chief_;
  const int needed_workers_;
  const int restarts_;

  std::map<TaskId, int> running_;     // the last signal that we sent
  std::map<TaskId, absl::Time> due_;  // restarts, only while running
  std::map<TaskId, RestartBudget> budgets_;
  std::map<TaskId, int> restarted_;  // how often
  std::vector<End> ends_;            // by time
  int able_workers_ = 0;             // that have not died
  Phase phase_ = Phase::kRunning;
  absl::Time deadline_ = absl::InfiniteFuture();  // of `phase_`
  JobState job_state_ = JobState::kUnknown;
  Fate fate_ = Fate::kNone;
  int stop_signal_ = 0;     // the first that we got
  absl::Time stop_time_;    // when it came
  bool held_ = false;       // an operator has stopped the job for good
  bool hard_stop_ = false;  // a second one came
  bool broken_ = false;     // without a task that the job needs
  bool gave_up_ = false;    // a task was not to be started once more
  std::string reason_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_SUPERVISOR_H_
