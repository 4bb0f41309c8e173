#ifndef LOCKSTEP_COMMON_JOB_JOB_WARNINGS_H_
#define LOCKSTEP_COMMON_JOB_JOB_WARNINGS_H_

#include <string>
#include <vector>

#include "common/job/job_config.h"

namespace lockstep {

// What a valid job says that is likely a mistake: each names the fields, their
// values and the fix. Empty: nothing.
//
// `job` is as its file and overrides say, with nothing filled in.
std::vector<std::string> JobWarnings(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_JOB_WARNINGS_H_
