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

namespace lockstep::cli {

// Parses the arguments of `lockstep set`: "replicas_to_aggregate=3",
// "learning_rate=0.05".
//
//   kInvalidArgument  another key, a key twice, or no number; lists the valid
//                     ones
absl::StatusOr<CoordinatorClient::Change> ParseSettings(
    const std::vector<std::string>& assignments);

// SteerCommands are `lockstep checkpoint`, `pause`, `resume`, `set` and
// `remove`: each sends a request to the chief and waits until it is in effect.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class SteerCommands {
 public:
  explicit SteerCommands(CLI::App& parent);

  bool chosen() const;

  // Returns 0 when the request is in effect; 1 if no chief answers within five
  // seconds, it refuses, or --timeout passes; 2 for bad flags, and for a value
  // that the chief calls invalid.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  struct Command {
    CLI::App* app;
    ChiefFlags chief;
    // Sends the request; returns a predicate that is true of a status in which
    // the request is in effect.
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

  // A deque, because its elements do not move: the parser has pointers to them.
  std::deque<Command> commands_;
  std::vector<std::string> assignments_;
  std::string worker_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STEER_COMMAND_H_
