#include "common/job/cluster_fit.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/job/strategy_checks.h"
#include "common/plan/number_tree.h"
#include "common/plan/run_settings.h"
#include "common/text/count_text.h"

namespace lockstep {
namespace {

// Limit of an elastic job: step records and the chief's list of dead workers
// have room for so many.
constexpr int kMaxWorkers = RunSettings::kMaxWorkers;

// A stalled member is replaced after this time, even if the lease is longer.
constexpr absl::Duration kDefaultStallTimeout = absl::Seconds(2);

std::string Workers(int count) { return CountText(count, "worker"); }

}  // namespace

absl::StatusOr<JobConfig> FitToCluster(JobConfig job, int num_workers) {
  // Before the fields are filled in, so that messages show the user's own
  // values.
  LOCKSTEP_RETURN_IF_ERROR(CheckStrategyWorkers(job, num_workers));
  if (job.total_num_replicas == 0) job.total_num_replicas = num_workers;
  // An elastic job may get more workers, and backups with them.
  if (job.tune_backups && num_workers == 1 && !job.elastic_workers) {
    return absl::InvalidArgumentError(
        "replicas_to_aggregate is AUTO, but the cluster has 1 worker, which "
        "can have no backup; leave the field out, or add workers");
  }
  // The job begins without backups; the chief adds them later.
  if (job.tune_backups) {
    job.replicas_to_aggregate = job.total_num_replicas;
  } else if (job.replicas_to_aggregate == 0) {
    job.replicas_to_aggregate =
        job.shares_work() ? BlocksOf(job.micro_batches_per_step,
                                     std::max(job.micro_batches_per_push, 1))
                          : job.total_num_replicas;
  }
  if (job.total_num_replicas != num_workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("total_num_replicas is ", job.total_num_replicas,
                     "; the cluster has ", Workers(num_workers),
                     "; make them equal, or leave the field out (--set "
                     "total_num_replicas=0)"));
  }
  // In shared work, a worker may compute several micro-batches of a step.
  const bool one_each =
      job.shares_work() || job.replicas_to_aggregate <= num_workers;
  if (job.elastic_workers && (!one_each || num_workers > kMaxWorkers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("elastic_workers: ", job.replicas_to_aggregate,
                     " gradients of ", Workers(num_workers),
                     "; there must be at most one of each worker, and ",
                     "at most ", kMaxWorkers, " workers"));
  }
  // The default of SyncReplicasOptimizer.
  if (job.initial_tokens == -1) job.initial_tokens = job.replicas_to_aggregate;
  if (job.stall_timeout == absl::ZeroDuration()) {
    // After the lease, the chief takes a silent worker for dead anyway.
    job.stall_timeout = std::min(job.lease, kDefaultStallTimeout);
  }
  // Again: some ranges depend on the fields that are now filled in.
  LOCKSTEP_RETURN_IF_ERROR(ValidateJobConfig(job));
  return job;
}

}  // namespace lockstep
