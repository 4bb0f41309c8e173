#ifndef LOCKSTEP_DEPLOY_LOCKSTEP_STATUS_JSON_H_
#define LOCKSTEP_DEPLOY_LOCKSTEP_STATUS_JSON_H_

#include <string>

#include "deploy/lockstep/job_status.h"

namespace lockstep {

// A status as one JSON object with the field names of
// proto/lockstep/v1/coordinator.proto. What the chief left out is left out, a
// figure that is no number is null, and bytes that are no UTF-8 are replaced.
//
// Units: durations are numbers of seconds.
// `indent`: columns; -1: all on one line.
std::string FormatStatusJson(const JobStatus& status, int indent = 2);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_LOCKSTEP_STATUS_JSON_H_
