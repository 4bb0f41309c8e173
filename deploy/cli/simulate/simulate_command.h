#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATE_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATE_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "deploy/cli/simulate/simulation_report.h"
#include "deploy/cli/simulate/virtual_job.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// SimulateCommand is `lockstep simulate`: it simulates a job's steps with 0 to
// 8 backups, with AUTO, and with shared work, under a virtual clock, and
// compares them.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class SimulateCommand {
 public:
  explicit SimulateCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0; 1 if a simulation or the job fails; 2 for wrong flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  struct Policy {
    std::string name;
    JobConfig job;
  };

  // Adds the flags for the times besides computing.
  void AddTimes();
  // The job, without backups.
  absl::StatusOr<VirtualJob> MakeJob() const;
  absl::StatusOr<std::vector<VirtualWorker>> MakeWorkers(int in_job_file) const;
  // The jobs that are compared.
  absl::StatusOr<std::vector<Policy>> Policies(const JobConfig& job,
                                               int workers) const;
  // Writes the progress of long work to `err`.
  absl::StatusOr<Simulation> Simulate(const VirtualJob& job,
                                      std::ostream& err) const;

  CLI::App& app_;
  std::string job_file_;
  std::vector<std::string> settings_;
  int workers_ = 0;
  std::string pass_time_;
  std::string trace_;
  std::vector<std::string> slow_;
  std::string die_ = "0/h";
  std::string restart_ = "5s";
  std::string overhead_ = "1ms";
  std::string push_overhead_ = "0s";
  std::string change_ = "10ms";
  std::optional<int64_t> steps_;
  std::optional<int64_t> warmup_;
  int most_backups_ = 8;
  int micro_batches_ = 0;  // of a shared step; 0: the job's, or a default
  uint64_t seed_ = 1;
  bool json_ = false;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATE_COMMAND_H_
