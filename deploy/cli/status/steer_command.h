#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STEER_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STEER_COMMAND_H_

#include <deque>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/cli/status/coordinator_client.h"
#include "deploy/cli/status/operator_command.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep {

// "replicas_to_aggregate=3", "learning_rate=0.05": what `lockstep set` takes.
//
//   kInvalidArgument  another key, a key twice, or no number; says what is
//                     possible
absl::StatusOr<CoordinatorClient::Change> ParseSettings(
    const std::vector<std::string>& assignments);

// SteerCommands are `lockstep checkpoint`, `pause`, `resume`, `set` and
// `remove`: each asks the chief, and waits until what it asked for is so.
class SteerCommands {
 public:
  explicit SteerCommands(CLI::App& parent);

  bool chosen() const;

  // Returns 0 when it is so; 1 when no chief answers within five seconds, it
  // refuses, or it is not so within --timeout; 2 for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  struct Command {
    CLI::App* app;
    ChiefFlags chief;
    // Asks, and says what is true of the status once it is so.
    std::function<absl::StatusOr<std::function<bool(const JobStatus&)>>(
        CoordinatorClient&)>
        ask;
    double timeout = 30;  // seconds
  };

  Command& Add(CLI::App& parent, const std::string& name,
               const std::string& description);
  void AddChange(CLI::App& parent, const std::string& name,
                 const std::string& description, bool paused);
  static int Run(const Command& command, Terminal& terminal, std::ostream& err);

  std::deque<Command> commands_;
  std::vector<std::string> assignments_;
  int worker_ = -1;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STEER_COMMAND_H_
