#ifndef LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_
#define LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_

#include <cstdint>

#include "chief/operators/member_job.h"
#include "common/job/job_config.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep::chief {

// Returns a number that differs between job files that differ in a value, and
// is never 0.
uint64_t FingerprintOf(const JobConfig& job);

// Fills in the job, and the member's share of the data.
void FillJob(const MemberJob& told, v1::RegisterResponse& response);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_REGISTRATION_ANSWER_H_
