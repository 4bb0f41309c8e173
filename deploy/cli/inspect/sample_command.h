#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_SAMPLE_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_SAMPLE_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "deploy/cli/inspect/trained_job.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// SampleCommand is `lockstep sample`: it generates text with a
// checkpoint of a model of kind transformer.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class SampleCommand {
 public:
  explicit SampleCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0, or 1 if there is no checkpoint or it is of another model.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  absl::Status Write(Terminal& terminal) const;

  CLI::App& app_;
  TrainedJob trained_;
  std::string prompt_ = "In the beginning ";
  int64_t bytes_ = 400;
  double temperature_ = 0.8;
  uint64_t seed_ = 1;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_SAMPLE_COMMAND_H_
