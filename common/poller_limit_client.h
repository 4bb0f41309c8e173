#ifndef LOCKSTEP_COMMON_POLLER_LIMIT_CLIENT_H_
#define LOCKSTEP_COMMON_POLLER_LIMIT_CLIENT_H_

#include <memory>

namespace lockstep {

// How many threads serve the events of gRPC's callback interface in this
// process: half of the machine's processors, from 2 to 16. gRPC fixes the
// number and has no setting for it.
int GrpcPollers();

// PollerLimit keeps all but a few of those threads asleep for as long as it
// lives.
//
// One of them polls at a time, and whenever an event arrives it wakes another
// one to poll while it serves the event itself. A single one wakes nobody, but
// receives, updates and sends in turn: on 2 processors it makes a step of one
// float a twentieth shorter, and one of 100 MB a fifth longer.
//
// A thread sleeps in the callback of a call that was cancelled before it began,
// so no byte is sent. Where the threads that are left do not answer, as another
// version of gRPC might have it, all are let go again and the log says so.
//
// Callbacks of the process must not wait for one another.
//
// Threads: make and end it in one thread. All calls of its own have ended when
// the destructor returns.
class PollerLimit {
 public:
  // Leaves `pollers` threads awake; 0: all.
  explicit PollerLimit(int pollers);
  ~PollerLimit();
  PollerLimit(const PollerLimit&) = delete;
  PollerLimit& operator=(const PollerLimit&) = delete;

 private:
  class Sleepers;

  std::unique_ptr<Sleepers> sleepers_;  // null where none is to sleep
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_POLLER_LIMIT_CLIENT_H_
