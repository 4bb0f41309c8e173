#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_VIRTUAL_JOB_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_VIRTUAL_JOB_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/job/job_config.h"
#include "deploy/cli/simulate/pass_law.h"

namespace lockstep::cli {

// A worker of a simulated job: its passes take `factor` times what the law
// says.
struct VirtualWorker {
  PassLaw law = PassLaw::Empirical({1});
  double factor = 1;
};

// A job to be simulated.
struct VirtualJob {
  // As fitted to a cluster of as many workers, in strict mode, with A <= N.
  JobConfig job;
  std::vector<VirtualWorker> workers;
  double deaths_per_second = 0;  // of each worker
  absl::Duration restart =
      absl::Seconds(5);  // from a death to the next process
  // From the last gradient of a step to the tokens of the next: transfer,
  // update, commit.
  absl::Duration overhead = absl::Milliseconds(1);
  // The time of each pass besides computing: announcement, push, token.
  absl::Duration push_overhead;
  // The time in which the servers do nothing else at a change of settings.
  absl::Duration change = absl::Milliseconds(10);
  uint64_t seed = 1;
  int64_t warmup = 100;  // steps that are made before the measured ones
  int64_t steps = 500;   // > 0, measured
};

// The cost of the measured steps.
struct SimulatedRun {
  absl::Duration time;
  int64_t steps = 0;
  int64_t gradients = 0;    // that counted
  absl::Duration computed;  // by all workers
  absl::Duration wasted;    // of that, for gradients that did not count
  int64_t deaths = 0;
  int64_t changes = 0;  // of the gradients of a step, warm-up included
  int replicas = 0;     // gradients of a step, at the end

  // `steps` and `gradients` must be above 0, as after a run without an error.
  double StepSeconds() const {
    return absl::ToDoubleSeconds(time) / static_cast<double>(steps);
  }
  double GradientSeconds() const {
    return absl::ToDoubleSeconds(time) / static_cast<double>(gradients);
  }
  double WastedFraction() const {
    return computed > absl::ZeroDuration()
               ? absl::FDivDuration(wasted, computed)
               : 0;
  }
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_VIRTUAL_JOB_H_
