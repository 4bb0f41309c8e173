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

// ChildProcess is a TaskProcess for tests, with waits that have a time limit,
// and access to its log. The process does not outlive this object, nor the
// test, even if the test is killed. (Programs must do the same for processes
// that they start.)
//
// Threads: not thread-safe; must be started from a thread that lasts, since
//          the process ends with that thread.
class ChildProcess {
 public:
  using Options = cli::TaskProcess::Options;

  // Returns when the program runs; it need not be ready. Errors are those of
  // TaskProcess::Start().
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const Options& options);

  pid_t pid() const { return process_->pid(); }

  // Sends `signal` to the program only, not to its group. After SIGSTOP all its
  // threads stand still.
  //
  //   kFailedPrecondition  it has ended
  absl::Status Signal(int signal);

  // Kills the program's whole group and waits for the program's end.
  cli::TaskExit Kill();

  // Returns how it ended, or nothing while it runs. Never waits.
  std::optional<cli::TaskExit> Poll() { return process_->Poll(); }

  // Waits for the end of the program.
  //
  //   kDeadlineExceeded  it still runs after `timeout`; quotes its last words
  absl::StatusOr<cli::TaskExit> Wait(absl::Duration timeout);

  // Waits until its log, from its own start on, contains `text`.
  //
  //   kDeadlineExceeded    it runs, but the text did not appear in `timeout`
  //   kFailedPrecondition  it ended without the text
  absl::Status WaitForLog(absl::string_view text, absl::Duration timeout);

  // Returns its log since its start; empty if nothing can be read.
  std::string ReadLog() const;

  // Returns the end of the log, short enough for a message.
  std::string LastWords() const;

 private:
  ChildProcess(std::unique_ptr<cli::TaskProcess> process, std::string log_path,
               uintmax_t log_start)
      : process_(std::move(process)),
        log_path_(std::move(log_path)),
        log_start_(log_start) {}

  const std::unique_ptr<cli::TaskProcess> process_;
  const std::string log_path_;
  const uintmax_t log_start_;  // bytes in the log before its start
};

// Runs a program to its end, as Start() and Wait(); its output is in
// `options.log_path`. Kills a program that exceeds `timeout`.
absl::StatusOr<cli::TaskExit> RunProgram(const ChildProcess::Options& options,
                                         absl::Duration timeout);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_CHILD_PROCESS_H_
