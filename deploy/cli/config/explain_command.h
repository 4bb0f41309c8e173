#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_EXPLAIN_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_EXPLAIN_COMMAND_H_

#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// ExplainCommand is `lockstep explain` for the fields of a job file.
// ExplainJobCommand adds flags to it, for running jobs.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class ExplainCommand {
 public:
  explicit ExplainCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }
  CLI::App& app() const { return app_; }

  // Returns 0, or 2 for an unknown field.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  CLI::App& app_;
  std::string field_;
  bool manual_page_ = false;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_EXPLAIN_COMMAND_H_
