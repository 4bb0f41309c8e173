#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATED_JOBS_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATED_JOBS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"

// The jobs whose steps are compared: a job with other ways to divide its steps.
//
// Errors: those of FitToCluster().
namespace lockstep::cli {

// Steps take the gradients of all `workers` but `backups`; nullopt: of as many
// as the chief chooses.
// Returns the job, fitted to these workers. Errors: those of FitToCluster()
absl::StatusOr<JobConfig> WithBackups(JobConfig job, int workers,
                                      std::optional<int> backups);

// `workers` share steps of so many micro-batches, and push `per_push` of them
// at a time.
// Returns the job, fitted to these workers. Errors: those of FitToCluster()
absl::StatusOr<JobConfig> WithSharedWork(JobConfig job, int workers,
                                         int micro_batches, int per_push = 1);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_SIMULATED_JOBS_H_
