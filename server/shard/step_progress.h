#ifndef LOCKSTEP_SERVER_SHARD_STEP_PROGRESS_H_
#define LOCKSTEP_SERVER_SHARD_STEP_PROGRESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/shard/shard.h"
#include "server/step/engine.h"

namespace lockstep::server {

// The progress of the step at hand, for a chief whose take has waited for long.
struct StepProgress {
  Engine::Arrivals arrivals = {};
  std::string waits_for = {};  // as Engine::WaitsFor()
  // The members of the step, ascending. If every worker is a member from the
  // start: those that have pushed all open parts. Empty without a gate.
  std::vector<int> members = {};
};
StepProgress ProgressOf(Shard& shard);

// The members of the step that the answer to a take tells the chief;
// `committed_step` is as in ChiefCommands::Ready. A commit clears the set of
// its step, so that they are unknown then.
std::vector<int> MembersAfterTake(Shard& shard, int64_t committed_step);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_STEP_PROGRESS_H_
