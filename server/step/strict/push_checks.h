#ifndef LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_
#define LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_

#include "absl/status/status.h"
#include "server/step/engine.h"

namespace lockstep::server {

// Checks the form of a push, and makes its rows canonical. Where
// `refuse_non_finite` is set and the push may be answered before its gradients
// are summed (`answered_early`), or in parts, its elements are checked too.
//
//   kInvalidArgument  as Engine::AddPush()
absl::Status CheckPush(const PartUpdater& updater, bool refuse_non_finite,
                       bool answered_early, Push& push);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_PUSH_CHECKS_H_
