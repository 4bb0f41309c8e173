#ifndef LOCKSTEP_COMMON_MEMBERSHIP_COORDINATOR_ANSWERS_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_COORDINATOR_ANSWERS_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/job/job_config.h"
#include "common/membership/membership.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep {

// Converts the chief's answer to a heartbeat; cuts its reason to a bounded
// length.
Membership::Answer AnswerOf(const v1::HeartbeatResponse& response);

// Returns the job in the chief's answer.
//
//   kInvalidArgument  the job is invalid: the chief is of another version
absl::StatusOr<JobConfig> JobOf(const v1::RegisterResponse& response);

// Returns a history that was received `ago`, with all of its ages advanced. The
// training time is advanced only if the job was training.
v1::JobHistory Aged(v1::JobHistory history, absl::Duration ago);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_COORDINATOR_ANSWERS_H_
