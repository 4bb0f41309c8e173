#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_EARLY_CALL_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_EARLY_CALL_H_

#include <memory>
#include <utility>

#include "worker/client/exchange/push_id.h"

namespace lockstep::worker {

// EarlyCall keeps the call for the token after a push, which is sent before the
// push's answers have come, for the wait for that token. `Call` is the call, on
// its way or answered.
//
// Threads: not thread-safe.
template <typename Call>
class EarlyCall {
 public:
  // Replaces the call of an earlier push.
  void Keep(const PushId& push, std::shared_ptr<Call> call) {
    push_ = push;
    call_ = std::move(call);
  }

  // Returns the call for the token after `push`, or null if there is none.
  const Call* Find(const PushId& push) const {
    return push_ == push ? call_.get() : nullptr;
  }

  // As Find(), but keeps the call no longer. A call after another push is
  // dropped with its answer.
  std::shared_ptr<Call> Take(const PushId& push) {
    std::shared_ptr<Call> call = std::exchange(call_, nullptr);
    return push_ == push ? std::move(call) : nullptr;
  }

 private:
  PushId push_;
  std::shared_ptr<Call> call_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_EARLY_CALL_H_
