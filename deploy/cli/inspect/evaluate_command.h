#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_EVALUATE_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_EVALUATE_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "deploy/cli/command/user_command.h"
#include "deploy/cli/inspect/trained_job.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// EvaluateCommand is `lockstep evaluate`: it scores a checkpoint on the job's
// test set as the evaluator does, without a chief.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class EvaluateCommand {
 public:
  explicit EvaluateCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0, or 1 if there is no checkpoint or no test set, or they do not
  // match.
  //
  // With a command of the user, that program computes in place of this process,
  // and its exit code is the result; see TrainedJob::Become().
  int Run(Terminal& terminal, std::ostream& err,
          const UserCommand& command = {}) const;

 private:
  absl::Status Evaluate(Terminal& terminal, const UserCommand& command) const;

  CLI::App& app_;
  TrainedJob trained_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_EVALUATE_COMMAND_H_
