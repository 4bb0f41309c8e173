#ifndef LOCKSTEP_DEPLOY_CLI_LOGS_LOGS_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_LOGS_LOGS_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/cli/logs/log_story.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// LogsCommand is `lockstep logs`: the lines of all tasks as one story.
//
// Threads: not thread-safe.
class LogsCommand {
 public:
  explicit LogsCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0, 1 if there are no logs or no journal, or no line of a --task in
  // them, 2 for bad flags. With --follow it ends when the run has ended, or
  // journalctl.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  absl::StatusOr<LogFilter> Filter(absl::Time now) const;
  int ShowRun(const LogFilter& filter, Terminal& terminal,
              std::ostream& err) const;
  int ShowJournal(const LogFilter& filter, Terminal& terminal,
                  std::ostream& err) const;

  CLI::App& app_;
  std::string log_dir_;
  bool journal_ = false;
  bool follow_ = false;
  std::vector<std::string> tasks_;
  std::string since_;
  std::string level_ = "trace";
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOGS_LOGS_COMMAND_H_
