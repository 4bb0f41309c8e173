#include "chief/traces/job_limits.h"

#include "common/job/work_checks.h"

namespace lockstep::chief {

RemedyLimits LimitsOf(const JobConfig& job) {
  const StrategyKind kind = job.strategy.kind;
  const bool servers = kind == StrategyKind::kParameterServer;
  const bool one_worker =
      kind == StrategyKind::kOneDevice || kind == StrategyKind::kMirrored;
  return {.no_backups = !servers || job.shares_work(),
          .chief_sets_backups = job.tune_backups,
          .no_servers = !servers,
          // Only gradients of float32 variables are rounded.
          .no_bfloat16 = one_worker || job.mode == SyncMode::kCompatible ||
                         job.model.variable_type != DType::kFloat32,
          .no_shared_memory = !WhyNoSharedMemory(job).empty(),
          .no_larger_pushes = !WhySumsDiffer(job).empty()};
}

}  // namespace lockstep::chief
