#include "common/job/work_checks.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"
#include "common/job/replicas.h"
#include "common/job/strategy_checks.h"

namespace lockstep {
namespace {

absl::Status Contradicts(absl::string_view field, const absl::AlphaNum& value,
                         absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", but work is SHARED, ", why));
}

absl::Status CheckOthers(const JobConfig& job) {
  if (job.mode != SyncMode::kStrict) {
    return Contradicts("mode", "COMPATIBLE",
                       "which needs one set of gradients for all variables; "
                       "set mode to STRICT, or leave work out");
  }
  if (job.strategy.kind != StrategyKind::kParameterServer) {
    return Contradicts("strategy.kind", StrategyKindName(job.strategy.kind),
                       "whose steps servers put together; set strategy.kind "
                       "to PARAMETER_SERVER, or leave work out");
  }
  if (const int replicas = ReplicasPerWorker(job, /*gpus=*/0); replicas > 1) {
    return Contradicts(job.strategy.devices.empty()
                           ? "strategy.replicas_per_worker"
                           : "number of strategy.devices",
                       replicas,
                       "whose numbers are computed one at a time; leave the "
                       "field out and start more workers");
  }
  if (job.tune_backups) {
    return Contradicts("replicas_to_aggregate", "AUTO",
                       "which has no backups; leave replicas_to_aggregate out");
  }
  // The chief fills in the number of micro-batches itself.
  if (job.replicas_to_aggregate != 0 &&
      job.replicas_to_aggregate != job.micro_batches_per_step) {
    return Contradicts("replicas_to_aggregate", job.replicas_to_aggregate,
                       "which has no backups: every step takes the gradients "
                       "of all its micro_batches_per_step; leave the field "
                       "out");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWork(const JobConfig& job) {
  const int numbers = job.micro_batches_per_step;
  if (!job.shares_work()) {
    if (numbers == 0) return absl::OkStatus();
    return Wrong("micro_batches_per_step", numbers,
                 "absent unless work is SHARED; set work: SHARED, or use "
                 "micro_batches to split each worker's batch");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("micro_batches_per_step", numbers, 1, kMaxMicroBatchesPerStep));
  // Micro-batches of different sizes would have different weights in the mean.
  if (job.batch_size % numbers != 0) {
    return Wrong("micro_batches_per_step", numbers,
                 absl::StrCat("a divisor of batch_size, ", job.batch_size,
                              ", the examples of a step"));
  }
  return CheckOthers(job);
}

}  // namespace lockstep
