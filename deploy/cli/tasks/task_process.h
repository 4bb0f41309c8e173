#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_TASK_PROCESS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_TASK_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/cli/tasks/task_exit.h"

namespace lockstep::cli {

// TaskProcess is one running program of the cluster. It leads its own process
// group, so that a terminal's Ctrl-C does not reach it, has no input, and
// writes to a log file. It cannot outlive this object, nor this process, even
// if that is killed; processes that the program starts may, if this process is
// killed.
//
// Start() gives SIGCHLD its default action if it is ignored.
//
// Threads: the kernel kills the program when the *thread* that started it ends:
//          start programs from the main thread.
class TaskProcess {
 public:
  struct Options {
    std::string program{};            // a path; PATH is not searched
    std::vector<std::string> args{};  // without the program's own name
    // Added to this process's.
    std::map<std::string, std::string> environment{};
    std::string log_path{};  // appended to
  };

  //   kInvalidArgument    the log cannot be written, or the program not run
  //   kResourceExhausted  no process or pipe can be made
  static absl::StatusOr<std::unique_ptr<TaskProcess>> Start(
      const Options& options);

  // Kills the whole group if the program still runs.
  ~TaskProcess();
  TaskProcess(const TaskProcess&) = delete;
  TaskProcess& operator=(const TaskProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Sends `signal` to the program; to its whole group if it is SIGKILL. Does
  // nothing after the program has ended.
  void Signal(int signal);

  // Returns how it ended, or nothing while it runs. Never waits. An end that
  // other code has taken with wait() counts as a failure.
  std::optional<TaskExit> Poll();

 private:
  explicit TaskProcess(pid_t pid) : pid_(pid) {}

  std::optional<TaskExit> Reap(int options);

  const pid_t pid_;
  std::optional<TaskExit> exit_;  // set once the process is reaped
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_TASK_PROCESS_H_
