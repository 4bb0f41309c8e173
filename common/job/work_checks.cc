#include "common/job/work_checks.h"

#include <algorithm>
#include <bit>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"
#include "common/job/replicas.h"
#include "common/job/strategy_checks.h"
#include "common/plan/number_tree.h"

namespace lockstep {
namespace {

absl::Status Contradicts(absl::string_view field, const absl::AlphaNum& value,
                         absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", but work is SHARED, ", why));
}

absl::Status CheckPushes(const JobConfig& job) {
  const int numbers = job.micro_batches_per_push;
  if (numbers == 0) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("micro_batches_per_push", numbers, 1,
                                    job.micro_batches_per_step));
  if (!std::has_single_bit(static_cast<unsigned>(numbers))) {
    return Wrong("micro_batches_per_push", numbers,
                 "a power of two, so that the sum of a step is the same "
                 "whatever it is; leave the field out, and the chief chooses");
  }
  const std::string why = WhySumsDiffer(job);
  if (numbers == 1 || why.empty()) return absl::OkStatus();
  return Wrong("micro_batches_per_push", numbers,
               absl::StrCat("1 or absent: ", why));
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
  // The chief fills in the number of pushes itself.
  if (job.replicas_to_aggregate != 0 &&
      job.replicas_to_aggregate !=
          BlocksOf(job.micro_batches_per_step,
                   std::max(job.micro_batches_per_push, 1))) {
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
    if (job.micro_batches_per_push != 0) {
      return Wrong("micro_batches_per_push", job.micro_batches_per_push,
                   "absent unless work is SHARED; set work: SHARED, or leave "
                   "the field out");
    }
    if (numbers == 0) return absl::OkStatus();
    return Wrong("micro_batches_per_step", numbers,
                 "absent unless work is SHARED; set work: SHARED, or use "
                 "micro_batches to split each worker's batch");
  }
  if (numbers == 0) {
    return Wrong("micro_batches_per_step", numbers,
                 "given where work is SHARED: several for each worker, a "
                 "divisor of batch_size");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("micro_batches_per_step", numbers, 1, kMaxMicroBatchesPerStep));
  // Micro-batches of different sizes would have different weights in the mean.
  if (job.batch_size % numbers != 0) {
    return Wrong("micro_batches_per_step", numbers,
                 absl::StrCat("a divisor of batch_size, ", job.batch_size,
                              ", the examples of a step"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckPushes(job));
  return CheckOthers(job);
}

bool ChoosesPushes(const JobConfig& job) {
  return job.shares_work() && job.micro_batches_per_push == 0 &&
         job.model.kind != kExternalModel && WhySumsDiffer(job).empty();
}

std::string WhySumsDiffer(const JobConfig& job) {
  if (job.gradient_wire_type == GradientType::kBFloat16) {
    return "gradient_wire_type is BFLOAT16, which rounds what is pushed";
  }
  if (job.model.variable_type == DType::kBFloat16) {
    return "model.variable_type is \"bfloat16\", whose gradients servers add "
           "in float32";
  }
  return "";
}

std::string WhyNoSharedMemory(const JobConfig& job) {
  if (job.mode == SyncMode::kCompatible) {
    return "compatible mode updates in place";
  }
  if (job.shares_work() || job.total_num_replicas < job.replicas_to_aggregate) {
    return "a worker's next share of a step would overwrite the gradients of "
           "the one before, which a server still reads";
  }
  return "";
}

}  // namespace lockstep
