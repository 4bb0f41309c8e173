#include "chief/traces/job_limits.h"

namespace lockstep::chief {

RemedyLimits LimitsOf(const JobConfig& job) {
  const StrategyKind kind = job.strategy.kind;
  const bool servers = kind == StrategyKind::kParameterServer;
  const bool compatible = job.mode == SyncMode::kCompatible;
  // A worker pushes several gradients a step, each over the one before.
  const bool repeats = job.total_num_replicas > 0 &&
                       job.total_num_replicas < job.replicas_to_aggregate;
  const bool one_worker =
      kind == StrategyKind::kOneDevice || kind == StrategyKind::kMirrored;
  return {.no_backups = !servers || job.shares_work(),
          .chief_sets_backups = job.tune_backups,
          .no_servers = !servers,
          .no_bfloat16 = one_worker || compatible,
          .no_shared_memory = compatible || repeats};
}

}  // namespace lockstep::chief
