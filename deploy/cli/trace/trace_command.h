#ifndef LOCKSTEP_DEPLOY_CLI_TRACE_TRACE_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_TRACE_TRACE_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "deploy/cli/status/operator_command.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// TraceCommand is `lockstep trace`.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class TraceCommand {
 public:
  explicit TraceCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Writes a file with the newest steps, as Chrome and Perfetto open it.
  // Returns 0, 1 if no chief answers, the job has made no step or the file
  // cannot be written, 2 for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  CLI::App& app_;
  ChiefFlags chief_;
  int64_t steps_ = 50;
  std::string out_ = "trace.json";
  double timeout_ = 5;  // seconds
};

// ExplainJobCommand is `lockstep explain` with a flag of a running job: why its
// steps take as long as they do. Without one, ExplainCommand explains the job
// file.
//
// Threads: not thread-safe.
// Borrows: `explain`, as TraceCommand does.
class ExplainJobCommand {
 public:
  // Adds its flags to the command `explain`.
  explicit ExplainJobCommand(CLI::App& explain);

  bool chosen() const;

  // Returns 0, 1 if no chief answers or the job has made too few steps, 2 for
  // bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  CLI::App& app_;
  ChiefFlags chief_;
  int64_t steps_ = 50;
  bool json_ = false;
  double timeout_ = 5;  // seconds
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TRACE_TRACE_COMMAND_H_
