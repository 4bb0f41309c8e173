#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_

#include "common/job/job_config.h"

namespace lockstep::cli {

// Returns how many of `num_workers` workers must be alive for a step. At least
// 1. In compatible mode 1, because one worker may contribute several gradients
// to a step.
int NeededWorkers(const JobConfig& job, int num_workers);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_
