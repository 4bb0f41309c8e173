#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_REFERENCE_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_REFERENCE_H_

#include "deploy/cli/config/job_field.h"

namespace lockstep {

// The fields of a job file: what the comments of job.proto say, and the
// defaults that this program has.
JobField JobReference();

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_REFERENCE_H_
