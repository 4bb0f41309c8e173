#include "common/status/job_status.h"

#include "absl/strings/match.h"

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

absl::string_view MemberStateName(MemberState state) {
  switch (state) {
    case MemberState::kMissing:
      return "missing";
    case MemberState::kAlive:
      return "alive";
    case MemberState::kDead:
      return "dead";
    case MemberState::kLeft:
      return "left";
    case MemberState::kJoining:
      return "joining";
    case MemberState::kUnknown:
      break;
  }
  return "unknown";
}

bool IsFinal(JobState state) {
  return state == JobState::kDone || state == JobState::kFailed ||
         state == JobState::kStopped;
}

absl::string_view ShownState(const JobStatus& status) {
  // The setting survives the end of a job, but an ended job is not paused.
  const bool paused =
      status.settings.paused && status.state == JobState::kTraining;
  return paused ? "paused" : JobStateName(status.state);
}

std::vector<MemberStatus> WorkersOf(const JobStatus& status) {
  std::vector<MemberStatus> workers;
  for (const MemberStatus& member : status.members) {
    if (absl::StartsWith(member.task, "worker")) workers.push_back(member);
  }
  return workers;
}

}  // namespace lockstep
