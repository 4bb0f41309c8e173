#ifndef LOCKSTEP_DEPLOY_LOCKSTEP_OPERATOR_COMMAND_H_
#define LOCKSTEP_DEPLOY_LOCKSTEP_OPERATOR_COMMAND_H_

#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "deploy/lockstep/terminal.h"

namespace lockstep {

// ChiefFlags say which chief a command is for: its address, or a file that
// names it.
class ChiefFlags {
 public:
  explicit ChiefFlags(CLI::App& app);

  //   kInvalidArgument  none or more than one flag; an address or a file that
  //                     makes no sense
  absl::StatusOr<std::string> Address() const;

 private:
  std::string chief_;
  std::string cluster_file_;
  std::string log_dir_;
};

// StatusCommand is `lockstep status`.
class StatusCommand {
 public:
  explicit StatusCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0, 1 when no chief answers within five seconds, 2 for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  CLI::App& app_;
  ChiefFlags chief_;
  bool json_ = false;
};

// StopCommand is `lockstep stop`.
class StopCommand {
 public:
  explicit StopCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns as StatusCommand::Run does, as soon as the chief has agreed.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  CLI::App& app_;
  ChiefFlags chief_;
  std::string reason_ = "lockstep stop";
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_LOCKSTEP_OPERATOR_COMMAND_H_
