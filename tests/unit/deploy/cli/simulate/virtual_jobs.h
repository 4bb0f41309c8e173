#ifndef LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_SIMULATE_VIRTUAL_JOBS_H_
#define LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_SIMULATE_VIRTUAL_JOBS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/job/job_config.h"
#include "deploy/cli/simulate/pass_law.h"
#include "deploy/cli/simulate/virtual_cluster.h"
#include "deploy/cli/simulate/virtual_job.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

// `law` for all workers, the last `slow` of which are slower by `factor`.
inline cli::VirtualJob JobOf(absl::string_view law, int workers, int backups,
                             int slow = 0, double factor = 1) {
  cli::VirtualJob job;
  job.job.stall_timeout = absl::Seconds(2);
  job.job.total_num_replicas = workers;
  job.job.replicas_to_aggregate = workers - backups;
  for (int i = 0; i < workers; ++i) {
    job.workers.push_back(
        {*cli::PassLaw::Parse(law), i < workers - slow ? 1 : factor});
  }
  job.warmup = 100;
  job.steps = 300;
  return job;
}

inline cli::VirtualJob Auto(cli::VirtualJob job) {
  job.job.tune_backups = true;
  return job;
}

// Steps of 16 micro-batches.
inline cli::VirtualJob Shared(cli::VirtualJob job) {
  job.job.work = Work::kShared;
  job.job.micro_batches_per_step = job.job.replicas_to_aggregate = 16;
  return job;
}

inline cli::SimulatedRun RunOf(const cli::VirtualJob& job) {
  const absl::StatusOr<cli::SimulatedRun> run = cli::VirtualCluster(job).Run();
  EXPECT_OK(run);
  cli::SimulatedRun failed;
  failed.time = absl::Seconds(1);
  failed.steps = failed.gradients = 1;
  return run.value_or(failed);
}

inline double Gradient(const cli::VirtualJob& job) {
  return RunOf(job).GradientSeconds();
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_SIMULATE_VIRTUAL_JOBS_H_
