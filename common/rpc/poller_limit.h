#ifndef LOCKSTEP_COMMON_RPC_POLLER_LIMIT_H_
#define LOCKSTEP_COMMON_RPC_POLLER_LIMIT_H_

#include <cstddef>
#include <memory>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/rpc/poller_demand.h"

namespace lockstep {

// How many threads serve the events of gRPC's callback interface in this
// process: half of the machine's processors, from 2 to 16. gRPC fixes the
// number and has no setting for it.
int GrpcPollers();

// PollerLimit keeps some of those threads asleep.
//
// One of them polls at a time, and whenever an event arrives, or a write has
// ended, it wakes another one. A single one wakes nobody, but receives, updates
// and sends in turn: on 2 processors it makes a step of one float a quarter
// shorter, and on some machines one of 100 MB a fifth longer.
//
// A thread sleeps in the callback of a call that was cancelled before it began,
// so no byte is sent. Where the threads that are left do not answer, as another
// version of gRPC might have it, all stay awake and the log says so.
//
// Callbacks of the process must not wait for one another.
//
// Threads: make and end it in one thread; Moved() and asleep() may be called in
//          any. All calls of its own have ended when the destructor returns.
class PollerLimit {
 public:
  // Leaves `pollers` threads awake. 0: all; but of two, as many as Moved() has
  // needed, for which it takes the time from `clock`.
  explicit PollerLimit(int pollers, const Clock& clock = Clock::Real());
  ~PollerLimit();
  PollerLimit(const PollerLimit&) = delete;
  PollerLimit& operator=(const PollerLimit&) = delete;

  // A call moves so many bytes. Never waits.
  void Moved(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  int asleep() const;  // threads

 private:
  class Sleepers;

  // For the thread that rests: whether it is to go on.
  bool GoesOnResting() ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock& clock_;
  std::unique_ptr<Sleepers> sleepers_;  // null where all stay awake
  bool adapts_ = false;

  Mutex mutex_;  // not held when one of the sleepers' is taken
  PollerDemand demand_ ABSL_GUARDED_BY(mutex_);
  bool rests_ ABSL_GUARDED_BY(mutex_) = false;  // a thread, or is about to
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_POLLER_LIMIT_H_
