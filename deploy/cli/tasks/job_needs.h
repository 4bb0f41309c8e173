#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_

#include "common/job/job_config.h"

namespace lockstep {

// How many of `num_workers` workers must be alive for the job to make a step.
// At least 1. In compatible mode 1, since one worker may give several gradients
// to a step.
int NeededWorkers(const JobConfig& job, int num_workers);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_
