#ifndef LOCKSTEP_TESTS_TESTING_CHILD_PROCESS_H_
#define LOCKSTEP_TESTS_TESTING_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "deploy/cli/tasks/task_exit.h"
#include "deploy/cli/tasks/task_process.h"

namespace lockstep::testing {

// ChildProcess is a TaskProcess that a test waits for, in time, and whose log
// it reads. Nothing of it outlives this object, nor the test, even one that is
// killed. (Processes that the program starts need the same care from it.)
//
// Threads: not safe to share; start programs from a thread that lasts, since
//          they end with it.
class ChildProcess {
 public:
  using Options = TaskProcess::Options;

  // Returns when the program runs, not when it is ready. Errors are
  // TaskProcess::Start's.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const Options& options);

  pid_t pid() const { return process_->pid(); }

  // Sends `signal` to the program alone.
  //
  //   kFailedPrecondition  it has ended
  absl::Status Signal(int signal);

  // Kills the program's whole group and waits for the program's end.
  TaskExit Kill();

  // How it ended, or nothing while it runs. Never waits.
  std::optional<TaskExit> Poll() { return process_->Poll(); }

  // Waits for its end.
  //
  //   kDeadlineExceeded  it still runs after `timeout`; quotes its last words
  absl::StatusOr<TaskExit> Wait(absl::Duration timeout);

  // Waits until its log, from its own start on, contains `text`.
  //
  //   kDeadlineExceeded    it runs but has not said so within `timeout`
  //   kFailedPrecondition  it ended without having said so
  absl::Status WaitForLog(absl::string_view text, absl::Duration timeout);

  // All that it has written since it started; empty if nothing can be read.
  std::string ReadLog() const;

  // The end of that, short enough for a message.
  std::string LastWords() const;

 private:
  ChildProcess(std::unique_ptr<TaskProcess> process, std::string log_path,
               uintmax_t log_start)
      : process_(std::move(process)),
        log_path_(std::move(log_path)),
        log_start_(log_start) {}

  const std::unique_ptr<TaskProcess> process_;
  const std::string log_path_;
  const uintmax_t log_start_;  // bytes that were in the log before us
};

// Runs a program to its end, as Start() and Wait() do; what it said is in
// `options.log_path`. A program that overstays `timeout` is killed.
absl::StatusOr<TaskExit> RunProgram(const ChildProcess::Options& options,
                                    absl::Duration timeout);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_CHILD_PROCESS_H_
