#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_CONFIG_MAKE_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_CONFIG_MAKE_COMMAND_H_

#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "deploy/cli/config/cluster_maker.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// ConfigMakeCommand is `lockstep config make`: writes a cluster file, or the
// TF_CONFIG of one of its tasks.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class ConfigMakeCommand {
 public:
  explicit ConfigMakeCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0, or 2 for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  absl::StatusOr<std::string> Make() const;

  CLI::App& app_;
  ClusterRequest request_;
  bool no_chief_ = false;
  std::string task_;
  bool environment_ = false;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_CONFIG_MAKE_COMMAND_H_
