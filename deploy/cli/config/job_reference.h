#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_REFERENCE_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_REFERENCE_H_

#include "deploy/cli/config/job_field.h"

namespace lockstep::cli {

// Returns the fields of a job file, with the comments of job.proto and this
// program's defaults.
JobField JobReference();

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_REFERENCE_H_
