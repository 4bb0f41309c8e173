#ifndef LOCKSTEP_COMMON_JOB_STRATEGY_CHECKS_H_
#define LOCKSTEP_COMMON_JOB_STRATEGY_CHECKS_H_

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep {

// Checks JobConfig.strategy, and that no other field contradicts it.
//
//   kInvalidArgument  names the field, the value, the reason and the fix
absl::Status CheckStrategy(const JobConfig& job);

// Checks that a cluster of `num_workers` workers suits the strategy.
//
//   kInvalidArgument  as CheckStrategy()
absl::Status CheckStrategyWorkers(const JobConfig& job, int num_workers);

// Checks that a cluster of `num_workers` workers and `num_ps` ps has the
// servers that the strategy needs; without a ps, workers host mirrors.
//
//   kInvalidArgument  as CheckStrategy()
absl::Status CheckStrategyServers(const JobConfig& job, int num_workers,
                                  int num_ps);

// The job file's name of the kind: "MIRRORED".
const char* StrategyKindName(StrategyKind kind);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_STRATEGY_CHECKS_H_
