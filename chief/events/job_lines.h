#ifndef LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_
#define LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_

#include <cstdint>
#include <string>

#include "chief/events/job_actions.h"
#include "chief/recovery/recovery_plan.h"

namespace lockstep::chief {

// Lines of the log, and reports, about the course of a job.

// Says that there is nothing to do: the newest checkpoint in `directory` is of
// `step`, which is the last step or a later one.
void SayDoneBefore(int64_t step, int64_t train_steps,
                   const std::string& directory, JobActions& out);

// Says that all servers go back by this plan. `latest` is the step of the
// newest checkpoint.
void SayGoingBack(const RecoveryPlan& plan, int64_t latest, JobActions& out);

// Reports the steps that are made again: the job continues from `step` and was
// at step `before`. `redone` says that the current step begins anew.
void SayRedone(int64_t step, int64_t before, bool redone, JobActions& out);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_
