#ifndef LOCKSTEP_CHIEF_OPERATORS_MEMBER_JOB_H_
#define LOCKSTEP_CHIEF_OPERATORS_MEMBER_JOB_H_

#include <vector>

#include "common/cluster/task_id.h"
#include "common/job/job_config.h"
#include "common/plan/run_settings.h"

namespace lockstep::chief {

// The description of the job in the answer to a member's registration.
struct MemberJob {
  JobConfig job = {};  // as it runs at that moment
  int num_workers = 0;
  int data_shard = 0;  // the member's own, in [0, num_workers)
  // Workers of an elastic job: those among which the data is divided,
  // ascending. The member repeats them in its heartbeats.
  std::vector<int> workers = {};
};

// Returns the job of a member that registers while `in_effect` are the
// settings: a worker that joins later must compute with these, not with those
// of the job file. `num_workers`: of the cluster, which is the number of shares
// unless the job is elastic.
MemberJob JobOfMember(const JobConfig& job, int num_workers,
                      const TaskId& member, const RunSettings& in_effect);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_MEMBER_JOB_H_
