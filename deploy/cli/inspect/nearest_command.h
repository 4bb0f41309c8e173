#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_NEAREST_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_NEAREST_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "deploy/cli/inspect/trained_job.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// NearestCommand is `lockstep nearest`: it looks up words in the newest
// checkpoint of a model of kind skip_gram.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class NearestCommand {
 public:
  explicit NearestCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0; 1 if there is no checkpoint, no such word or no such file; 2 if
  // the flags name neither a word nor a file of pairs.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  absl::Status Answer(Terminal& terminal) const;

  CLI::App& app_;
  std::string checkpoints_;
  int64_t step_ = kNewestStep;
  std::string text_;
  int64_t min_count_ = 5;
  std::string table_ = "input_vectors";
  std::string word_;
  std::string pairs_;
  int64_t count_ = 30;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_NEAREST_COMMAND_H_
