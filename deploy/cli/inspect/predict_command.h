#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_PREDICT_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_PREDICT_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "deploy/cli/command/user_command.h"
#include "deploy/cli/inspect/trained_job.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// PredictCommand is `lockstep predict`: it writes the predictions of a
// checkpoint's model for the examples of a file, without a chief.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class PredictCommand {
 public:
  explicit PredictCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0, or 1 if there is no checkpoint or no data, they do not match, or
  // the predictions cannot be written.
  //
  // With a command of the user, that program computes in place of this process,
  // and its exit code is the result; see TrainedJob::Become().
  int Run(Terminal& terminal, std::ostream& err,
          const UserCommand& command = {}) const;

 private:
  absl::Status Predict(Terminal& terminal, const UserCommand& command) const;

  CLI::App& app_;
  TrainedJob trained_;
  std::string data_;
  std::string out_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_PREDICT_COMMAND_H_
