#ifndef LOCKSTEP_COMMON_JOB_WORK_CHECKS_H_
#define LOCKSTEP_COMMON_JOB_WORK_CHECKS_H_

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep {

// The most micro-batches that a shared step may have.
inline constexpr int kMaxMicroBatchesPerStep = 4096;

// Checks JobConfig.work and micro_batches_per_step, and that no other field
// contradicts them. Memory is checked by the servers, which know the model.
//
//   kInvalidArgument  names the field, the value, the reason and the fix
absl::Status CheckWork(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_WORK_CHECKS_H_
