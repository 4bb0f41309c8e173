#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_CONFIG_CHECK_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_CONFIG_CHECK_COMMAND_H_

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "common/cluster/cluster.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// ConfigCheckCommand is `lockstep config check`: it reads a TF_CONFIG as the
// programs do, and explains its meaning and its mistakes.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class ConfigCheckCommand {
 public:
  explicit ConfigCheckCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0 if there are no mistakes; 1 if there are, and with --connect if a
  // task cannot be reached; 2 for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  absl::StatusOr<Cluster> Load() const;
  std::map<TaskId, std::string> Connect(
      const Cluster& cluster, std::vector<std::string>& mistakes) const;

  CLI::App& app_;
  std::string tf_config_;
  std::string environment_file_;
  std::string cluster_file_;
  bool connect_ = false;
  std::string tls_dir_;
  double timeout_seconds_ = 2;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_CONFIG_CHECK_COMMAND_H_
