#ifndef LOCKSTEP_COMMON_JOB_LOCAL_CHECKS_H_
#define LOCKSTEP_COMMON_JOB_LOCAL_CHECKS_H_

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep {

// Checks the update rules of local steps: local.optimizer and those of
// variable_optimizers. `job` must have local steps.
//
//   kInvalidArgument  a rule whose values follow from its state alone, which
//                     begins anew with each pass; a rule of some variables
//                     without a rate of its own. Names the field and the fix
absl::Status CheckRulesOfLocalSteps(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_LOCAL_CHECKS_H_
