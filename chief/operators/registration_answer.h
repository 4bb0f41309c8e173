#ifndef LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_
#define LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_

#include "common/cluster/task_id.h"
#include "common/job/job_config.h"
#include "common/plan/run_settings.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep::chief {

// Fills in the job as it is now, and the member's share of the data.
// `num_workers`: of the cluster, which is the number of shares unless the job
// is elastic.
void FillJob(const JobConfig& job, int num_workers, const TaskId& member,
             const RunSettings& in_effect, v1::RegisterResponse& response);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_
