#ifndef LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_
#define LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_

#include "chief/operators/member_job.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep::chief {

// Fills in the job, and the member's share of the data.
void FillJob(const MemberJob& told, v1::RegisterResponse& response);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_
