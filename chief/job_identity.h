#ifndef LOCKSTEP_CHIEF_JOB_IDENTITY_H_
#define LOCKSTEP_CHIEF_JOB_IDENTITY_H_

#include <string>
#include <vector>

#include "common/cluster/cluster.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// Returns the tasks that may register with the chief of `cluster`, including an
// evaluator.
std::vector<TaskId> MembersOf(const Cluster& cluster);

// Returns the id of a job, which is equal for equal jobs on equal clusters: a
// restarted chief recognizes its servers by it.
std::string MakeJobId(const JobConfig& job, const Cluster& cluster);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_IDENTITY_H_
