#include "server/shard/step_progress.h"

#include "server/step/gate.h"

namespace lockstep::server {

StepProgress ProgressOf(Shard& shard) {
  StepProgress progress;
  progress.waits_for = shard.engine().WaitsFor();
  progress.arrivals = shard.engine().arrivals();
  if (shard.gate() == nullptr) return progress;
  if (!shard.all_workers_count()) {
    progress.members = shard.gate()->Members();
    return progress;
  }
  for (const auto& [worker, parts] : progress.arrivals.parts) {
    if (parts == progress.arrivals.open_parts) {
      progress.members.push_back(worker);
    }
  }
  return progress;
}

std::vector<int> MembersAfterTake(Shard& shard, int64_t committed_step) {
  if (shard.gate() == nullptr || committed_step != 0) return {};
  return shard.gate()->Members();
}

}  // namespace lockstep::server
