#ifndef LOCKSTEP_CHIEF_JOB_IDENTITY_H_
#define LOCKSTEP_CHIEF_JOB_IDENTITY_H_

#include <string>
#include <vector>

#include "common/cluster/cluster.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// The tasks that may register with the chief of `cluster`, an evaluator among
// them.
std::vector<TaskId> MembersOf(const Cluster& cluster);

// The same job on the same cluster has the same id, so that a chief that was
// restarted knows its servers again.
std::string MakeJobId(const JobConfig& job, const Cluster& cluster);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_IDENTITY_H_
