#ifndef LOCKSTEP_CHIEF_JOB_STAND_STILL_H_
#define LOCKSTEP_CHIEF_JOB_STAND_STILL_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "chief/events/job_lines.h"
#include "chief/job/job_context.h"
#include "chief/operators/status_table.h"
#include "chief/steps/step_driver.h"

namespace lockstep::chief {

// StandStill counts and reports what a job loses while its servers are brought
// together: time, and steps that are made again.
//
//   Begin() -> Found(), once or several times -> Report()
//
// Threads: not thread-safe.
class StandStill {
 public:
  // Records that the job stands still. The time that it loses counts from the
  // beginning of the step at hand; in a paused job from now, because until now
  // it stood still for its operator; and while settings change
  // (`for_operator`), from ServerAway().
  void Begin(const JobContext& context, const StepDriver& steps,
             bool for_operator = false) {
    const bool waits = for_operator || context.settings.now().paused ||
                       steps.began() == absl::InfinitePast();
    since_ = waits ? context.now : steps.began();
    away_ = false;
    step_ = steps.step();
    redone_ = context.losses.steps_redone;
  }

  // Counts the steps that are made again because the servers are at `step`.
  // `repeated`: as in RecoveryPlan.
  void Found(int64_t step, int64_t repeated, JobContext& context) {
    lost_ = std::max(repeated, step_ - step);
    context.losses.steps_repeated += lost_;
  }
  // True if the last Found() has counted some.
  bool HasLostSteps() const { return lost_ > 0; }

  // Records that a server is away while settings change.
  void ServerAway(absl::Time now) {
    if (!std::exchange(away_, true)) since_ = now;
  }
  // Reports that the job goes on from `step`: with mirrors that were given up
  // and are back (`taken_back`), or after a server was away.
  void Report(int64_t step, uint64_t epoch, bool taken_back,
              JobContext& context) const {
    StatusTable::Losses& losses = context.losses;
    const absl::Duration stood_still = context.now - since_;
    if (taken_back) {
      SayTakenBack(step, epoch, stood_still, context.out);
    } else {
      losses.recoveries += 1;
      losses.stood_still += stood_still;
      SayGoesOn(step, step_, epoch, stood_still, context.out);
    }
    context.out.push_back(Waits{});
    SayRedone(step, step_, losses.steps_redone > redone_, context.out);
    context.Reach(step);
    context.out.push_back(LossesSoFar{losses});
  }
  // Reports that the job goes on from `step` with changed settings. It is a
  // recovery only if the job has lost something meanwhile.
  void ReportChange(int64_t step, uint64_t epoch, JobContext& context) const {
    if (away_ || HasLostSteps()) {
      return Report(step, epoch, /*taken_back=*/false, context);
    }
    context.Found(step);
    context.out.push_back(Waits{});
  }

 private:
  absl::Time since_;
  int64_t step_ = 0;    // at Begin()
  int64_t lost_ = 0;    // steps that the last Found() has counted
  int64_t redone_ = 0;  // steps that had begun anew until then
  bool away_ = false;   // ServerAway() was called
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_STAND_STILL_H_
