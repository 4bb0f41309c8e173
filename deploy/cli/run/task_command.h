#ifndef LOCKSTEP_DEPLOY_CLI_RUN_TASK_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_TASK_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "deploy/cli/command/user_command.h"
#include "deploy/cli/tasks/task_plan.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// TaskCommand is `lockstep task`: it becomes the program of one task of a job
// whose configuration is in a directory, for service managers and containers.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class TaskCommand {
 public:
  explicit TaskCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Does not return if the program can run: its exit code is then that of this
  // process. Otherwise returns 2, with the reason on `err`. With --show it
  // prints the program's call and returns 0. `command` takes the part of the
  // built-in worker; empty: there is none.
  int Run(const UserCommand& command, Terminal& terminal,
          std::ostream& err) const;

 private:
  absl::StatusOr<TaskPlan> Plan(const UserCommand& command) const;

  CLI::App& app_;
  std::string role_;
  std::string instance_;
  std::string config_dir_ = "/etc/lockstep";
  std::string state_dir_;
  std::string program_dir_;
  bool pod_index_ = false;
  bool show_ = false;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_TASK_COMMAND_H_
