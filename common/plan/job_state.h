#ifndef LOCKSTEP_COMMON_PLAN_JOB_STATE_H_
#define LOCKSTEP_COMMON_PLAN_JOB_STATE_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// The state of a job, with the numbers of JobState in coordinator.proto.
enum class JobState : int {
  kUnknown = 0,    // a newer chief's state without a name here
  kStarting = 1,   // waiting for members, variables, values
  kTraining = 2,   // steps are made
  kFinishing = 3,  // the last checkpoint is written and scored
  kDone = 4,
  kFailed = 5,
  kStopped = 6,  // stopped early, with a checkpoint
};

// "starting", "training", ...
absl::string_view JobStateName(JobState state);

// True for the states in which every process must leave.
bool IsFinal(JobState state);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_JOB_STATE_H_
