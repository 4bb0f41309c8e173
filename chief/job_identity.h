#ifndef LOCKSTEP_CHIEF_JOB_IDENTITY_H_
#define LOCKSTEP_CHIEF_JOB_IDENTITY_H_

#include <string>
#include <vector>

#include "common/cluster/cluster.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// The tasks that may register with the chief of `cluster`, including an
// evaluator.
std::vector<TaskId> MembersOf(const Cluster& cluster);

// The id of a job, which is the same for the same job on the same cluster: a
// restarted chief recognizes its servers by it.
std::string MakeJobId(const JobConfig& job, const Cluster& cluster);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_IDENTITY_H_
