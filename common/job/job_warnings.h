#ifndef LOCKSTEP_COMMON_JOB_JOB_WARNINGS_H_
#define LOCKSTEP_COMMON_JOB_JOB_WARNINGS_H_

#include <string>
#include <vector>

#include "common/job/job_config.h"

namespace lockstep {

// Returns warnings about likely mistakes in a valid job; each names the fields,
// their values and the fix.
//
// `job` must be the job of the file and the overrides, with nothing filled in.
std::vector<std::string> JobWarnings(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_JOB_WARNINGS_H_
