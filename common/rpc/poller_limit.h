#ifndef LOCKSTEP_COMMON_RPC_POLLER_LIMIT_H_
#define LOCKSTEP_COMMON_RPC_POLLER_LIMIT_H_

#include <cstddef>
#include <memory>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/rpc/poller_demand.h"

namespace lockstep {

// The number of threads that serve the events of gRPC's callback interface in
// this process: half of the machine's processors, at least 2 and at most 16.
// gRPC fixes the number and has no setting for it.
int GrpcPollers();

// PollerLimit keeps some of those threads asleep.
//
// One of them polls at a time, and wakes another one for every event and every
// finished write. A single thread wakes none, but receives, updates and sends
// in turn: on 2 processors that makes a step of one float a quarter shorter,
// and on some machines a step of 100 MB a fifth longer.
//
// A thread sleeps in the callback of a call that was cancelled before it began,
// so no byte is sent. If the remaining threads do not answer, which another
// version of gRPC might cause, all threads stay awake and the log says so.
//
// Callbacks of the process must not wait for one another.
//
// Threads: construct and destroy it in one thread; Moved() and asleep() may be
//          called in any. All its calls have ended when the destructor returns.
class PollerLimit {
 public:
  // Leaves `pollers` threads awake. 0: all, but if there are two, the number
  // that the calls told to Moved() need, with times of `clock`.
  explicit PollerLimit(int pollers, const Clock& clock = Clock::Real());
  ~PollerLimit();
  PollerLimit(const PollerLimit&) = delete;
  PollerLimit& operator=(const PollerLimit&) = delete;

  // Records a call of this many bytes. Never waits.
  void Moved(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  int asleep() const;  // threads

 private:
  class Sleepers;

  // For the resting thread: true if it must go on resting.
  bool GoesOnResting() ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock& clock_;
  std::unique_ptr<Sleepers> sleepers_;  // null if all stay awake
  bool adapts_ = false;

  Mutex mutex_;  // must not be held when locking that of Sleepers
  PollerDemand demand_ ABSL_GUARDED_BY(mutex_);
  bool rests_ ABSL_GUARDED_BY(mutex_) = false;  // a thread rests or is about to
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_POLLER_LIMIT_H_
