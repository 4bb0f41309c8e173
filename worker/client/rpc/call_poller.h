#ifndef LOCKSTEP_WORKER_CLIENT_RPC_CALL_POLLER_H_
#define LOCKSTEP_WORKER_CLIENT_RPC_CALL_POLLER_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "grpcpp/completion_queue.h"

namespace lockstep {

// CallPoller serves the events of calls that are made on its queue. A thread
// that has to wait for some of them serves all of them meanwhile, so that an
// answer wakes that thread and no other; while there is none, and it has not
// just been there, a thread of the poller's own does.
//
// With several threads of its own these serve, and who waits only waits: where
// processors abound, wake-ups cost little, and copies of large answers are
// shared out.
//
// Threads: safe to share, but for RunUntil(), in which one thread may be at a
//          time. Events run one by one in each thread that serves.
class CallPoller {
 public:
  // What the queue tells once for each time that its address was the tag of an
  // operation.
  class Event {
   public:
    virtual ~Event() = default;
    // `ok` as grpc::CompletionQueue::Next() has it. Must not wait. May end the
    // event.
    virtual void Happened(bool ok) = 0;
  };

  // `threads` of its own; 0: one where gRPC would have two, else as many.
  explicit CallPoller(int threads = 0);
  // Serves what is still to happen. All operations must be on their way to
  // their end, and nobody in RunUntil().
  ~CallPoller();
  CallPoller(const CallPoller&) = delete;
  CallPoller& operator=(const CallPoller&) = delete;

  grpc::CompletionQueue& queue() { return queue_; }

  // Has `event` happen, with true, in a thread that serves: perhaps this one,
  // later, in RunUntil().
  void Soon(Event* event) ABSL_LOCKS_EXCLUDED(mutex_);

  // Has a thread of the poller's own serve at once, for the one that was in
  // RunUntil() does not come back soon.
  void ServeAlone() ABSL_LOCKS_EXCLUDED(mutex_);

  // While another event happens: has `event` happen, with true, in a thread
  // that is about to wait for further ones. What it starts then comes after all
  // that was started meanwhile; gRPC has it in the same packet. At most a few
  // milliseconds later.
  void BeforeWaiting(Event* event) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns when `done` is true, which an event makes so, or at the deadline.
  // `done` is asked in this thread, before everything else and after events.
  void RunUntil(absl::FunctionRef<bool()> done,
                absl::Time deadline = absl::InfiniteFuture())
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Guest;
  class Kick;

  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  // `serves`: this thread of the poller's own waits for events from then on.
  void RunWaiting(bool serves) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when there is no thread in RunUntil(), and there was none lately.
  void LetGuestServe() ABSL_LOCKS_EXCLUDED(mutex_);
  // Has a thread in RunUntil() ask again whether it is done.
  void TellGuest() ABSL_LOCKS_EXCLUDED(mutex_);

  const int num_threads_;
  grpc::CompletionQueue queue_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool guest_ ABSL_GUARDED_BY(mutex_) = false;    // a thread in RunUntil()
  int64_t visits_ ABSL_GUARDED_BY(mutex_) = 0;    // that have ended
  int64_t events_ ABSL_GUARDED_BY(mutex_) = 0;    // that own threads served
  int64_t seen_ ABSL_GUARDED_BY(mutex_) = 0;      // of the visits
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;   // until the guest leaves
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;  // an own thread waits
  std::vector<Event*> before_waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CLIENT_RPC_CALL_POLLER_H_
