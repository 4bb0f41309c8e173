#ifndef LOCKSTEP_TESTS_TESTING_PROCESS_CLUSTER_H_
#define LOCKSTEP_TESTS_TESTING_PROCESS_CLUSTER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "deploy/cli/run/port_reservation.h"
#include "deploy/cli/tasks/task_exit.h"
#include "tests/testing/child_process.h"

namespace lockstep::testing {

// Returns the path of one of this build's programs, such as "ps_server".
std::string ProgramPath(absl::string_view name);

// ProcessCluster is a training cluster of real programs on 127.0.0.1, each with
// its own TF_CONFIG, port and log file. Addresses are fixed at Create() and
// stay reserved, so that a task can be killed and restarted.
//
//   Task:  not started -> running -> ended -> running -> ...
//
// Threads: not thread-safe; start tasks from a thread that lasts.
// Owns:    its processes, which end with it.
// Errors:  every method that names a task: kNotFound, no such task.
class ProcessCluster {
 public:
  // The program of the tasks of one job: path and arguments.
  struct Program {
    std::string path;
    std::vector<std::string> args;
  };
  struct Job {
    int tasks = 1;  // > 0
    Program program;
  };
  struct Options {
    std::map<std::string, Job> jobs;  // by name, as in TF_CONFIG's cluster
    std::map<std::string, std::string> environment;  // for every task
    std::string log_directory;  // must exist; gets JOB-INDEX.log of each task
  };

  // Chooses addresses; starts no task.
  //
  //   kInvalidArgument    no job, or a job without tasks
  //   kResourceExhausted  no free ports
  static absl::StatusOr<std::unique_ptr<ProcessCluster>> Create(
      Options options);

  // Changes the next starts of a task: an environment variable of its own, or
  // an additional argument.
  void SetEnvironment(const std::string& job, int index,
                      const std::string& name, const std::string& value);
  void UnsetEnvironment(const std::string& job, int index,
                        const std::string& name);
  void AddArgument(const std::string& job, int index,
                   const std::string& argument);

  // Starts a task that is not running; errors as ChildProcess::Start().
  //
  //   kFailedPrecondition  it runs
  absl::Status Start(const std::string& job, int index);

  // Starts every task that is not running, `ps` first. Does not wait, because
  // tasks must cope with missing peers.
  absl::Status StartAll();

  // Sends `signal` to a running task.
  //
  //   kFailedPrecondition  it does not run
  absl::Status Signal(const std::string& job, int index, int signal);

  // Kills a task with SIGKILL and waits until it is gone.
  //
  //   kFailedPrecondition  it does not run
  absl::Status Kill(const std::string& job, int index);

  // Waits for the end of a task.
  //
  //   kFailedPrecondition  it was never started
  //   kDeadlineExceeded    it still runs after `timeout`; quotes its last words
  absl::StatusOr<cli::TaskExit> Wait(const std::string& job, int index,
                                     absl::Duration timeout);

  // Waits until every started task has ended with code 0.
  //
  //   kDeadlineExceeded  one still runs after `timeout`, the limit for all
  //   kAborted           one ended otherwise, though others may still run;
  //                      quotes its last words
  absl::Status WaitAllSucceed(absl::Duration timeout);

  // Waits until a task's log has `text`; errors as ChildProcess::WaitForLog().
  absl::Status WaitForLog(const std::string& job, int index,
                          absl::string_view text, absl::Duration timeout);

  // Returns a task's log since its latest start; empty before the first.
  absl::StatusOr<std::string> ReadLog(const std::string& job, int index) const;

  // Returns the address of a task, "127.0.0.1:port".
  absl::StatusOr<std::string> Address(const std::string& job, int index) const;

  // Returns the value of a task's TF_CONFIG.
  absl::StatusOr<std::string> TfConfig(const std::string& job, int index) const;

  // Returns a task's process; valid until the task is started again.
  //
  //   kFailedPrecondition  it was never started
  absl::StatusOr<ChildProcess*> Process(const std::string& job, int index);

 private:
  struct Task {
    cli::PortReservation port;
    std::unique_ptr<ChildProcess> process;  // null until started
    std::map<std::string, std::string> environment = {};
    std::vector<std::string> more_args = {};
  };
  using TaskName = std::pair<std::string, int>;

  explicit ProcessCluster(Options options) : options_(std::move(options)) {}

  absl::StatusOr<ChildProcess*> Running(const std::string& job, int index);

  const Options options_;
  std::map<TaskName, Task> tasks_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_PROCESS_CLUSTER_H_
