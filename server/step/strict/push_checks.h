#ifndef LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_
#define LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/step/engine.h"

namespace lockstep::server {

// Checks the form of a push, and makes its rows canonical. If
// `refuse_non_finite` is set and the push may be answered before its gradients
// are summed (`answered_early`), or in parts, also checks its elements.
//
//   kInvalidArgument  as Engine::AddPush()
absl::Status CheckPush(const PartUpdater& updater, bool refuse_non_finite,
                       bool answered_early, Push& push);

// Checks that a server at `step` has reached `named`, the step that a worker
// names. `prepared`: `named` only waits for the chief's commit. Errors as
// Engine::CheckReached().
absl::Status CheckStep(int64_t named, int64_t step, bool prepared);

// Returns the outcome of a push that a server at `attempt` of the step after
// `step` must not collect: kStale for an older step, kSuperseded for an older
// attempt. Returns nullopt if the server must collect the push. The push's step
// must not be ahead of the server's.
//
//   kUnavailable  as Engine::AddPush()
absl::StatusOr<std::optional<PushOutcome>> JudgePush(const Push& push,
                                                     int64_t step,
                                                     int64_t attempt);

// The gradients, means and memory that a step lacks.
struct WaitCounts {
  int open_parts = 0;     // parts that lack gradients
  int64_t gradients = 0;  // that a part needs
  int64_t lacking = 0;    // of the part that lacks the most
  int means = 0;          // parts whose means come from other mirrors
  int64_t blocked = 0;    // parts whose memory has readers
  bool norm = false;      // of the gradients of all servers

  // Counts a part that is not complete: the mean of a part that is `copied`
  // from another mirror, or else the gradients beyond those `collected`.
  void Add(bool copied, int64_t collected);
};

// The text of Engine::WaitsFor().
std::string TextOf(const WaitCounts& waits);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_
