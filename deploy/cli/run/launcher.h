#ifndef LOCKSTEP_DEPLOY_CLI_RUN_LAUNCHER_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_LAUNCHER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "deploy/cli/run/run_report.h"
#include "deploy/cli/run/run_view.h"
#include "deploy/cli/run/signal_inbox.h"
#include "deploy/cli/run/supervisor.h"
#include "deploy/cli/status/status_poller.h"
#include "deploy/cli/tasks/launch_plan.h"
#include "deploy/cli/tasks/task_process.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// Launcher runs the processes of one cluster from start to end, and shows their
// progress. Supervisor decides; this class starts, calls, signals and prints.
//
// Threads: use from the main thread: no process outlives the thread that
//          started it.
// Borrows: the terminal and the inbox of signals.
class Launcher {
 public:
  struct Options {
    std::vector<TaskLaunch> launches{};
    TaskId chief{};  // the task that hosts the chief
    std::string chief_address{};
    // The certificate with which this process asks the chief; empty: none.
    std::string operator_tls_dir{};
    int needed_workers = 1;
    bool need_follows_settings = false;  // see Supervisor
    int restarts = 0;                    // per task; see Supervisor
    bool programs = false;               // likewise
    bool elastic_programs = false;       // likewise
    bool chief_in_program = false;       // likewise
    bool input_ends = false;             // likewise
    bool ps_are_mirrors = false;         // likewise
    std::string result_path{};  // the result is written here; empty: nowhere
    RunPlace place{};
    // A log above this size is moved to its ".1" file, replacing the older
    // part.
    int64_t log_limit_bytes = int64_t{64} << 20;
  };

  // Returns the inbox for Run(). From now on its signals do not end this
  // process, so that it should be made before the first directory.
  static SignalInbox CatchSignals();

  Launcher(Options options, Terminal& terminal, SignalInbox& signals);

  // Runs the cluster and returns the exit code for this process, after printing
  // the reason. No process of the cluster is left then. SIGINT, SIGTERM, SIGHUP
  // and SIGQUIT stop the run, the last two unless they were ignored before, as
  // by nohup. Must be called once. Output that is blocked delays only the end
  // of this call, until such a signal, and for kLastOutput after one.
  static constexpr absl::Duration kLastOutput = absl::Seconds(1);
  int Run();

 private:
  absl::Status StartAll();
  absl::Status Start(const TaskLaunch& launch);
  void Restart(TaskId task);
  void Loop();
  void WaitForEvents() const;
  void TakeSignals(absl::Time now);
  void TakeNews(absl::Time now);
  void Reap(absl::Time now);
  void Apply(const Supervisor::Actions& actions);
  void NoteExit(TaskId task, TaskExit exit);
  void CutLogs(absl::Time now);
  bool JobIsDone() const;
  void NoteSlowToLeave(absl::Time now);
  int End(const RunOutcome& outcome);
  void ShowRest(bool interrupted);
  std::string ReasonOf(TaskId task) const;
  std::map<TaskId, LogTail> ReadLogs(const RunOutcome& outcome) const;

  const Options options_;
  Terminal& terminal_;
  SignalInbox& signals_;
  RunView view_;
  Supervisor supervisor_;
  std::map<TaskId, std::unique_ptr<TaskProcess>> processes_;
  // Log sizes in bytes at the last start.
  std::map<TaskId, int64_t> log_starts_;
  absl::Time logs_looked_at_ = absl::InfinitePast();
  // When this process heard that the job is done; the past once it has said
  // which tasks do not leave.
  absl::Time done_since_ = absl::InfiniteFuture();
  std::unique_ptr<StatusPoller> poller_;  // set when all processes are started
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_LAUNCHER_H_
