#ifndef LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_
#define LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_

#include <cstdint>
#include <string>

#include "chief/events/job_actions.h"
#include "chief/recovery/recovery_plan.h"

namespace lockstep::chief {

// Lines of the log, and reports, about the course of a job.

// The newest checkpoint in `directory` is of `step`, the last one or a later
// one.
void SayDoneBefore(int64_t step, int64_t train_steps,
                   const std::string& directory, JobActions& out);

// All servers go back, as the plan says. `latest`: the newest checkpoint.
void SayGoingBack(const RecoveryPlan& plan, int64_t latest, JobActions& out);

// The job goes on from `step`, and was at step `before`. `redone`: the step at
// hand begins anew.
void SayRedone(int64_t step, int64_t before, bool redone, JobActions& out);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_
