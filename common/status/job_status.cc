#include "common/status/job_status.h"

#include "common/cluster/task_id.h"

namespace lockstep {

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

absl::string_view ShownState(const JobStatus& status) {
  // The setting survives the end of a job, but an ended job is not paused.
  const bool paused =
      status.settings.paused && status.state == JobState::kTraining;
  return paused ? "paused" : JobStateName(status.state);
}

std::optional<int> WorkerIndexOf(const MemberStatus& member) {
  const std::optional<TaskId> task = TaskId::FromString(member.task);
  if (!task.has_value() || task->type != TaskType::kWorker) return std::nullopt;
  return task->index;
}

std::vector<MemberStatus> WorkersOf(const JobStatus& status) {
  std::vector<MemberStatus> workers;
  for (const MemberStatus& member : status.members) {
    if (WorkerIndexOf(member).has_value()) workers.push_back(member);
  }
  return workers;
}

}  // namespace lockstep
