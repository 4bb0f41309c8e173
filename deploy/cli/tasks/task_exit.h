#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_TASK_EXIT_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_TASK_EXIT_H_

#include <ostream>
#include <string>

namespace lockstep::cli {

// The end of a process: by itself with `code`, or by `signal`.
struct TaskExit {
  int code = 0;    // 0 when a signal ended it
  int signal = 0;  // 0 when it ended by itself

  // Converts a status of waitpid() for an ended process.
  static TaskExit FromWaitStatus(int status);

  bool ok() const { return code == 0 && signal == 0; }

  // True if the process ended by itself, with a code that asks for no restart.
  bool permanent() const { return signal == 0 && code > 0 && code < 128; }

  // Returns "ended with exit code 1", "was ended by signal 11 (Segmentation
  // fault)".
  std::string ToString() const;

  bool operator==(const TaskExit&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const TaskExit& exit);
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_TASK_EXIT_H_
