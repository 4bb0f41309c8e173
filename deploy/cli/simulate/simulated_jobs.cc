#include "deploy/cli/simulate/simulated_jobs.h"

#include <utility>

#include "common/job/cluster_fit.h"

namespace lockstep::cli {

absl::StatusOr<JobConfig> WithBackups(JobConfig job, int workers,
                                      std::optional<int> backups) {
  // The policies are compared on one number of workers.
  job.elastic_workers = false;
  job.work = Work::kOwnBatches;
  job.micro_batches_per_step = 0;
  job.micro_batches_per_push = 0;
  job.total_num_replicas = workers;
  job.tune_backups = !backups.has_value();
  job.replicas_to_aggregate = workers - backups.value_or(0);
  // A setting of compatible mode, while the simulation is of strict mode.
  job.initial_tokens = -1;
  return FitToCluster(std::move(job), workers);
}

absl::StatusOr<JobConfig> WithSharedWork(JobConfig job, int workers,
                                         int micro_batches, int per_push) {
  job.elastic_workers = false;
  job.work = Work::kShared;
  job.micro_batches_per_step = micro_batches;
  job.micro_batches_per_push = per_push;
  // A step must have an example for each micro-batch; the simulation reads no
  // data.
  job.batch_size = micro_batches;
  job.total_num_replicas = workers;
  job.tune_backups = false;
  job.replicas_to_aggregate = 0;
  job.initial_tokens = -1;
  return FitToCluster(std::move(job), workers);
}

}  // namespace lockstep::cli
