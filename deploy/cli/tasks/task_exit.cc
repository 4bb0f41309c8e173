#include "deploy/cli/tasks/task_exit.h"

#include <string.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"

namespace lockstep::cli {

TaskExit TaskExit::FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return TaskExit{.signal = WTERMSIG(status)};
  return TaskExit{.code = WEXITSTATUS(status)};
}

std::string TaskExit::ToString() const {
  if (signal == 0) return absl::StrCat("ended with exit code ", code);
  return absl::StrCat("was ended by signal ", signal, " (", strsignal(signal),
                      ")");
}

std::ostream& operator<<(std::ostream& out, const TaskExit& exit) {
  return out << exit.ToString();
}

}  // namespace lockstep::cli
