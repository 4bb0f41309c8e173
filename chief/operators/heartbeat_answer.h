#ifndef LOCKSTEP_CHIEF_OPERATORS_HEARTBEAT_ANSWER_H_
#define LOCKSTEP_CHIEF_OPERATORS_HEARTBEAT_ANSWER_H_

#include "chief/operators/member_answers.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep::chief {

// Fills in the state of the job, and the chief's requests to the member.
void FillHeard(const MemberAnswers::Heard& heard,
               v1::HeartbeatResponse& response);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_HEARTBEAT_ANSWER_H_
