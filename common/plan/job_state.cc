#include "common/plan/job_state.h"

namespace lockstep {

absl::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kStarting:
      return "starting";
    case JobState::kTraining:
      return "training";
    case JobState::kFinishing:
      return "finishing";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kStopped:
      return "stopped";
    case JobState::kUnknown:
      break;
  }
  return "unknown";
}

bool IsFinal(JobState state) {
  return state == JobState::kDone || state == JobState::kFailed ||
         state == JobState::kStopped;
}

}  // namespace lockstep
