#include "deploy/cli/tasks/job_needs.h"

#include <algorithm>

namespace lockstep::cli {

// In strict mode each worker contributes one gradient to a step, or, if there
// are fewer replicas than gradients, its share of them. One worker can make
// whole steps of shared work.
bool OneWorkerSuffices(const JobConfig& job) {
  // With AUTO the chief takes fewer gradients where workers are missing.
  return job.mode == SyncMode::kCompatible || job.shares_work() ||
         job.tune_backups;
}

int NeededWorkers(const JobConfig& job, int num_workers) {
  if (OneWorkerSuffices(job)) return 1;
  const int gradients =
      job.replicas_to_aggregate > 0 ? job.replicas_to_aggregate : num_workers;
  const int replicas =
      job.total_num_replicas > 0 ? job.total_num_replicas : num_workers;
  return std::max(1, std::min({gradients, replicas, num_workers}));
}

}  // namespace lockstep::cli
