#include "chief/events/job_lines.h"

#include "absl/strings/str_cat.h"
#include "common/text/count_text.h"
#include "common/text/duration_text.h"

namespace lockstep::chief {

void SayDoneBefore(int64_t step, int64_t train_steps,
                   const std::string& directory, JobActions& out) {
  const std::string what =
      absl::StrCat("nothing to do: ", directory, " has step ", step);
  if (step == train_steps) {
    Notify(out, absl::StrCat(what, " of ", step,
                             "; to train again, name another "
                             "checkpoint.directory, raise train_steps, or give "
                             "--fresh"));
  } else {
    Notify(out,
           absl::StrCat(what, ", and train_steps is ", train_steps,
                        "; raise train_steps to train on, or begin before it "
                        "with --from STEP or --fresh"));
  }
}

void SayGoingBack(const RecoveryPlan& plan, int64_t latest, JobActions& out) {
  // Only a checkpoint leads to a later step than 0. It need not be the newest:
  // damaged ones that cannot be set aside stay there.
  const std::string from =
      plan.step > 0 || latest == plan.step
          ? absl::StrCat("the checkpoint of step ", plan.step)
          : "their initial values, since there is no checkpoint";
  Error(out,
        absl::StrCat(plan.reason, ": all servers go back to ", from,
                     "; repeated: ", CountText(plan.repeated_steps, "step")));
}

void SayHeld(int64_t step, bool paused, JobActions& out) {
  Warn(out,
       absl::StrCat("the servers hold step ", step, " of this job: it ",
                    paused ? "is paused, and `lockstep resume` lets it train"
                           : "goes on from there"));
}

void SayGoesOn(int64_t step, int64_t before, uint64_t epoch,
               absl::Duration stood_still, JobActions& out) {
  Warn(out, absl::StrCat("the job goes on from step ", step, " (it was at ",
                         before, "), epoch ", epoch, "; it stood still for ",
                         DurationText(stood_still, absl::Milliseconds(10))));
}

void SayTakenBack(int64_t step, uint64_t epoch, absl::Duration took,
                  JobActions& out) {
  Warn(out, absl::StrCat("the job goes on from step ", step,
                         " with the mirrors that are back, epoch ", epoch,
                         "; taking them back took ",
                         DurationText(took, absl::Milliseconds(10))));
}

void SayRedone(int64_t step, int64_t before, bool redone, JobActions& out) {
  // Committed steps were lost; otherwise at most the current step begins anew.
  if (step < before) {
    out.push_back(StepsRedone{
        absl::StrCat("committed steps ", step + 1, " to ", before)});
  } else if (redone) {
    out.push_back(StepsRedone{absl::StrCat("step ", before + 1)});
  }
}

}  // namespace lockstep::chief
