#ifndef LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_
#define LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/step/engine.h"

namespace lockstep::server {

// Checks the form of a push, and makes its rows canonical. Where
// `refuse_non_finite` is set and the push may be answered before its gradients
// are summed (`answered_early`), or in parts, its elements are checked too.
//
//   kInvalidArgument  as Engine::AddPush()
absl::Status CheckPush(const PartUpdater& updater, bool refuse_non_finite,
                       bool answered_early, Push& push);

// Whether a server at `step` has reached the step that a worker names.
// `prepared`: `named` waits for the chief's word. Errors as
// Engine::CheckReached().
absl::Status CheckStep(int64_t named, int64_t step, bool prepared);

// The outcome of a push on a server at `attempt` of the step after `step`, if
// it is of another one; nothing for a push that is to be collected. It must not
// be ahead of the server.
//
//   kUnavailable  as Engine::AddPush()
absl::StatusOr<std::optional<PushOutcome>> JudgePush(const Push& push,
                                                     int64_t step,
                                                     int64_t attempt);

// The gradients, means and memory that a step lacks.
struct WaitCounts {
  int open_parts = 0;     // parts that lack gradients
  int64_t gradients = 0;  // that a part needs
  int64_t lacking = 0;    // at most, of a part
  int means = 0;          // parts whose means come from other mirrors
  int64_t blocked = 0;    // parts whose memory has readers
  bool norm = false;      // of the gradients of all servers
};

// For people, as Engine::WaitsFor().
std::string TextOf(const WaitCounts& waits);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_
