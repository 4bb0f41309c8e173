#ifndef LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_
#define LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "chief/events/job_actions.h"
#include "chief/recovery/recovery_plan.h"

namespace lockstep::chief {

// Lines of the log, and reports, about the course of a job.

// Logs that there is nothing to do: the newest checkpoint in `directory` is of
// `step`, which is not below `train_steps`.
void SayDoneBefore(int64_t step, int64_t train_steps,
                   const std::string& directory, JobActions& out);

// Logs that all servers go back by `plan`. `latest` is the step of the newest
// checkpoint, -1 if there is none.
void SayGoingBack(const RecoveryPlan& plan, int64_t latest, JobActions& out);

// Logs that a chief which has just started finds `step` on the servers.
void SayHeld(int64_t step, bool paused, JobActions& out);

// Logs that the job, which was at step `before`, goes on from `step` after a
// server was away.
void SayGoesOn(int64_t step, int64_t before, uint64_t epoch,
               absl::Duration stood_still, JobActions& out);

// Logs that the job goes on from `step` with mirrors that were given up and are
// back, after a round that took so long.
void SayTakenBack(int64_t step, uint64_t epoch, absl::Duration took,
                  JobActions& out);

// Reports the steps that are made again: the job was at step `before` and
// continues from `step`. `redone`: the current step begins anew.
void SayRedone(int64_t step, int64_t before, bool redone, JobActions& out);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_JOB_LINES_H_
