#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_PUSH_ID_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_PUSH_ID_H_

#include <cstdint>

#include "common/plan/step_vocabulary.h"
#include "worker/client/chunks/held_chunks.h"

namespace lockstep::worker {

// The push of a pass's gradient for one attempt of its step. Attempt 0 is a
// push of compatible mode, or no push: the token after a pass that pushed
// nothing is of that attempt, too.
struct PushId {
  PassId pass = {};
  int64_t attempt = 0;

  // False for pushes of compatible mode, whose values are pulled: other
  // gradients may count as well.
  bool BringsValues() const { return attempt > 0; }
  // The step of the values that answers to the push bring.
  HeldChunks::Held Values() const { return {pass.step + 1, attempt}; }

  bool operator==(const PushId&) const = default;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_PUSH_ID_H_
