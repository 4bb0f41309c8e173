#ifndef LOCKSTEP_TESTS_BENCHMARK_LOCKSTEP_WORKER_H_
#define LOCKSTEP_TESTS_BENCHMARK_LOCKSTEP_WORKER_H_

#include "absl/status/status.h"
#include "common/cluster/cluster.h"
#include "tests/benchmark/role_options.h"

namespace lockstep::benchmark {

// Runs a worker of a real job with all of Lockstep's own worker except the
// computation: its gradients never change. Writes its record, if it has one.
// Returns when the job is done.
//
//   kInternal  the variables are not the result of the gradients
//   others     as ChiefClient and TrainingLoop
absl::Status RunLockstepWorker(const Cluster& cluster,
                               const RoleOptions& options);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_LOCKSTEP_WORKER_H_
