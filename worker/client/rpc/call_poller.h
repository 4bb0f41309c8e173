#ifndef LOCKSTEP_WORKER_CLIENT_RPC_CALL_POLLER_H_
#define LOCKSTEP_WORKER_CLIENT_RPC_CALL_POLLER_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "grpcpp/completion_queue.h"

namespace lockstep::worker {

// CallPoller serves the events of calls that are made on its queue. It is a
// leader/follower pool: the thread in RunUntil() polls the queue for all
// callers, so that an answer costs one wake-up, of the thread that waits for
// it; a hand-over to a polling thread would cost two. When no thread has been
// in RunUntil() for a moment, a thread of the poller polls.
//
// A poller with several threads polls on them all the time, and RunUntil() only
// waits: with many processors a wake-up costs little, and several threads share
// the copying of large answers.
//
// Threads: safe to share, but only one thread at a time may be in RunUntil().
//          With one thread, events run one after the other; with several, they
//          may run at the same time.
class CallPoller {
 public:
  // The tag of an operation on the queue.
  class Event {
   public:
    virtual ~Event() = default;
    // Called once for each operation with this tag, when the operation has
    // ended. `ok` as in grpc::CompletionQueue::Next(). Must not wait. May
    // delete the event.
    virtual void Happened(bool ok) = 0;
  };

  // Starts `threads` threads; 0: as many as gRPC would have pollers
  // (GrpcPollers()), but one instead of two.
  explicit CallPoller(int threads = 0);
  // Waits for the events of all operations, which must have ended or been
  // cancelled. No thread may be in RunUntil().
  ~CallPoller();
  CallPoller(const CallPoller&) = delete;
  CallPoller& operator=(const CallPoller&) = delete;

  grpc::CompletionQueue& queue() { return queue_; }

  // Calls event->Happened(true) later in a thread that polls, which may be the
  // calling one in RunUntil().
  void Soon(Event* event) ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts polling on the poller's thread now. Call it before work that keeps
  // the caller out of RunUntil() for long.
  void ServeAlone() ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls event->Happened(true) in a thread that is about to wait for further
  // events, at most a few milliseconds later. An operation that the event
  // starts comes after all that were started meanwhile, and gRPC sends them in
  // one packet. Must be called from an event.
  void BeforeWaiting(Event* event) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns when `done` returns true, which only an event may cause, or at the
  // deadline. Calls `done` in this thread, first and after events.
  void RunUntil(absl::FunctionRef<bool()> done,
                absl::Time deadline = absl::InfiniteFuture())
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Follower;
  class Wake;

  // The loop of a thread of the poller.
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls the events of BeforeWaiting(). `serves` must be true if this thread
  // of the poller waits for events next.
  void RunWaiting(bool serves) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when no thread is in RunUntil() and none has been there for kGrace.
  void LetFollowerServe() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes a thread in RunUntil() call `done` again.
  void WakeFollower() ABSL_LOCKS_EXCLUDED(mutex_);

  const int num_threads_;
  grpc::CompletionQueue queue_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool follower_ ABSL_GUARDED_BY(mutex_) = false;  // a thread in RunUntil()
  int64_t visits_ ABSL_GUARDED_BY(mutex_) =
      0;  // calls of RunUntil() that ended
  int64_t events_ ABSL_GUARDED_BY(mutex_) =
      0;                                      // served by the poller's threads
  int64_t seen_ ABSL_GUARDED_BY(mutex_) = 0;  // visits_ when last looked at
  // The poller's thread sleeps until the follower leaves.
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;
  // A thread of the poller waits in the queue.
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Event*> before_waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_RPC_CALL_POLLER_H_
