#ifndef LOCKSTEP_COMMON_JOB_WORK_CHECKS_H_
#define LOCKSTEP_COMMON_JOB_WORK_CHECKS_H_

#include <string>

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep {

// The most micro-batches that a shared step may have.
inline constexpr int kMaxMicroBatchesPerStep = 4096;

// Checks JobConfig.work, micro_batches_per_step and micro_batches_per_push, and
// that no other field contradicts them. Memory is checked by the servers, which
// know the model, and so are variables of programs of the user.
//
//   kInvalidArgument  names the field, the value, the reason and the fix
absl::Status CheckWork(const JobConfig& job);

// True if the chief may choose how many micro-batches are pushed at once: work
// is shared, the job does not say it, and the sum of neighbouring gradients is
// the same on a worker as on servers. Programs of the user may be written in
// any language, and for numbers alone.
bool ChoosesPushes(const JobConfig& job);

// Returns why a sum of gradients on a worker is not that of the servers, so
// that micro_batches_per_push must be 1; empty: it is.
std::string WhySumsDiffer(const JobConfig& job);

// Returns why the servers of a job share no memory with workers of their host;
// empty: they may. `job` is one of FitToCluster().
std::string WhyNoSharedMemory(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_WORK_CHECKS_H_
