#ifndef LOCKSTEP_DEPLOY_CLI_RUN_RUN_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_RUN_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "deploy/cli/command/counted_cluster.h"
#include "deploy/cli/command/user_command.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// RunCommand is `lockstep run`: it runs a whole cluster on this machine.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class RunCommand {
 public:
  // Declares the sub-command and its flags.
  explicit RunCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns the exit code: that of RunOutcome, or 2 if the job cannot run, with
  // the reason on `err`. `command` has the words after "--", as they stand.
  int Run(Terminal& terminal, std::ostream& err,
          const UserCommand& command) const;

 private:
  CLI::App& app_;
  void AddWhat();  // flags that say which tasks and which job
  void AddHow();

  std::string cluster_file_;
  TaskCounts counts_;
  UserCommand command_;  // words before "--" that belong to no flag
  std::string evaluator_;
  std::string job_file_;
  std::vector<std::string> settings_;
  std::string log_dir_;
  std::string state_dir_;
  std::string log_level_ = "info";
  std::string program_dir_;
  std::string status_address_ = "127.0.0.1:0";
  int compute_threads_ = 0;  // 0: divide the cores among workers
  int gpus_ = 0;
  int restarts_ = 3;  // per task
  bool fresh_ = false;
  bool tls_ = false;
  bool insecure_ = false;
  std::optional<int64_t> from_;  // a step
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_RUN_COMMAND_H_
