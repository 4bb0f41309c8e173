#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATED_JOBS_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATED_JOBS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"

// The jobs whose steps are compared: a job with other ways to divide its steps.
// Settings of the job that contradict such a way are reset.
//
// Errors: those of FitToCluster().
namespace lockstep::cli {

// Returns the job, fitted to `workers` workers of which each step leaves out
// `backups`; nullopt: as many as the chief chooses.
absl::StatusOr<JobConfig> WithBackups(JobConfig job, int workers,
                                      std::optional<int> backups);

// Returns the job, fitted to `workers` workers that share steps of so many
// micro-batches, and push `per_push` of them at a time.
absl::StatusOr<JobConfig> WithSharedWork(JobConfig job, int workers,
                                         int micro_batches, int per_push = 1);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATED_JOBS_H_
