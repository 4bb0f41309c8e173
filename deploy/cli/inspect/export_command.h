#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_EXPORT_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_EXPORT_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// ExportCommand is `lockstep export`: it copies variables of one checkpoint, or
// their moving averages, into one safetensors file, with the slots that are
// asked for and without counters. The file appears complete or not at all.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class ExportCommand {
 public:
  explicit ExportCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0, or 1 if there is no such checkpoint, or it is damaged; if a
  // pattern matches no variable or slot; if averages are requested and there
  // are none; if the file exists, or cannot be written. `err` then names flag,
  // value and fix.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  // A tensor of the checkpoint and its name in the file.
  struct Chosen {
    std::string source;
    TensorSpec target;
  };

  absl::Status Export(Terminal& terminal) const;
  absl::StatusOr<std::vector<Chosen>> Choose(
      const CheckpointReader& checkpoint) const;
  // Adds the slots of the chosen variables whose own names match --slots.
  absl::Status AddSlots(const CheckpointReader& checkpoint,
                        std::vector<Chosen>& chosen) const;
  absl::Status Write(const CheckpointReader& checkpoint,
                     const std::vector<Chosen>& chosen,
                     Terminal& terminal) const;

  CLI::App& app_;
  std::string checkpoints_;
  int64_t step_ = -1;  // -1: the newest
  std::string out_;
  bool averaged_ = false;
  std::vector<std::string> patterns_;
  std::vector<std::string> slots_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_EXPORT_COMMAND_H_
