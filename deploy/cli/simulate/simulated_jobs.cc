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
  // The simulation computes nothing, so a job that does not divide its steps
  // this way is compared too: without what contradicts shared work, and with an
  // example for each micro-batch.
  job.batch_size = micro_batches;
  job.micro_batches = 1;
  job.local_steps = 1;
  job.local = {};
  job.strategy.replicas_per_worker = 0;
  job.strategy.devices.clear();
  job.total_num_replicas = workers;
  job.tune_backups = false;
  job.replicas_to_aggregate = 0;
  job.initial_tokens = -1;
  return FitToCluster(std::move(job), workers);
}

}  // namespace lockstep::cli
