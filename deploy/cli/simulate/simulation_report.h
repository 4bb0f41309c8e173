#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATION_REPORT_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATION_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "deploy/cli/simulate/virtual_job.h"

namespace lockstep::cli {

// What became of one policy: a number of backups, or AUTO.
struct PolicyRun {
  std::string policy;
  SimulatedRun run;
};

// The policies on the same workers. There is at least one.
struct Simulation {
  int workers = 0;
  // Gradients that all workers compute in a second if none waits: the sum of
  // their speeds.
  double best_rate = 0;
  std::vector<PolicyRun> runs;            // the first one is compared with
  std::vector<std::string> changes = {};  // of AUTO, one line each

  // 1 if no worker ever waits and each gradient counts. A little more is
  // possible, as best_rate is that of other draws.
  double Efficiency(const SimulatedRun& run) const {
    return 1 / (run.GradientSeconds() * best_rate);
  }
  // The run with the least time per gradient.
  size_t Best() const;
};

// A table of times, efficiency and wasted work, and a plot of the times per
// gradient, in lines of at most `width` columns; 60 are enough.
std::string SimulationText(const Simulation& simulation, size_t width);

// The numbers of SimulationText(), as one line of JSON.
std::string SimulationJson(const Simulation& simulation);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATION_REPORT_H_
