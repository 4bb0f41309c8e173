#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_

#include "common/job/job_config.h"

namespace lockstep::cli {

// True if the job can step with one worker, however many it has: in compatible
// mode one worker may contribute several gradients to a step.
bool OneWorkerSuffices(const JobConfig& job);

// Returns how many of `num_workers` workers must be alive for a step under the
// job's own settings. At least 1.
int NeededWorkers(const JobConfig& job, int num_workers);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_JOB_NEEDS_H_
