#ifndef LOCKSTEP_SERVER_STEP_COMPATIBLE_TOKEN_QUEUE_H_
#define LOCKSTEP_SERVER_STEP_COMPATIBLE_TOKEN_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"

namespace lockstep::server {

// TokenQueue is the queue of tokens that admits workers to their next pass. A
// token is the value of the global step at which it was issued. Both tokens and
// requests are served first in, first out.
//
// A token taken with TakeToken() is leased: until it is settled, the queue
// remembers its taker, gives the same token again to the same taker, and can
// take it back.
//
//   open -> closed: no tokens are added any more; the rest can be taken
//
// A queue may have a capacity, which training does not use: tokens beyond it
// wait, in one line with plain closes.
//
// Threads: safe to share. No call waits: a request that cannot be answered yet
//          is stored under its id, and the call that ends it returns it.
// Errors:  a call that fails has changed nothing.
class TokenQueue {
 public:
  static constexpr int64_t kNoLimit = -1;

  // A request that has ended. kOk: a dequeue has a token; kCancelled;
  // kOutOfRange: the queue was closed.
  struct Completed {
    uint64_t id = 0;
    absl::Status status;
    int64_t token = 0;
  };
  using Completions = std::vector<Completed>;

  // The taker of a token, and the pass after which it takes the token.
  struct Taker {
    int32_t worker = 0;
    uint64_t incarnation = 0;  // larger is newer
    int64_t pass = 0;          // counts this incarnation's passes

    bool operator==(const Taker&) const = default;
  };

  struct Waiting {
    uint64_t id = 0;
    std::optional<Taker> taker;  // none for a plain Dequeue
    absl::Time since;
  };

  struct Lease {
    Taker taker;
    int64_t token = 0;
    bool settled = false;  // used, so that it stays with the taker
  };

  // A consistent view of the queue, for status pages and tests.
  struct State {
    std::vector<int64_t> tokens;   // front first
    std::vector<Waiting> waiting;  // next to be served first
    std::vector<Lease> leases;     // by worker
    std::vector<uint64_t> adding;  // requests that wait for room, in their line
    bool closed = false;
  };

  // `capacity` is the largest number of tokens, > 0, or kNoLimit.
  explicit TokenQueue(int64_t capacity = kNoLimit) : capacity_(capacity) {}

  // Adds tokens in order; returns the other requests that they end. Adding none
  // succeeds even on a closed or a full queue. Tokens beyond the capacity wait
  // under `id`, which State::adding lists; the call that makes room returns it.
  //
  //   kCancelled  the queue is closed
  absl::StatusOr<Completions> Enqueue(int64_t token, uint64_t id = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Completions> EnqueueMany(absl::Span<const int64_t> tokens,
                                          uint64_t id = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests a token under `id`, with no lease. The result is empty if the
  // request must wait.
  //
  //   kInvalidArgument  an `id` that already waits
  //   kOutOfRange       the queue is closed and empty
  absl::StatusOr<Completions> Dequeue(uint64_t id, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As Dequeue(), with a lease. A repeated call for the same pass never takes a
  // second token: it returns the first one or, if the earlier call still waits,
  // takes over its place in the line and ends it with kCancelled. A call for a
  // later pass, or of a newer incarnation, settles the worker's lease and ends
  // an older wait with kCancelled.
  //
  //   kInvalidArgument     an `id` that already waits
  //   kFailedPrecondition  an older incarnation or an earlier pass than that
  //                        of a call before
  //   kOutOfRange          the queue is closed and empty
  absl::StatusOr<Completions> TakeToken(uint64_t id, const Taker& taker,
                                        absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Marks the token that was taken after that pass as used, because all
  // gradients of the worker's next pass have arrived. No effect if the queue
  // has no such lease.
  void Settle(const Taker& taker) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the waits and leases of incarnations of `worker` up to `incarnation`,
  // which is dead: a wait with kCancelled; a token that is not settled goes
  // back to the front, from where it may end other waits. Newer incarnations
  // keep theirs.
  Completions ReturnTokensOf(int32_t worker, uint64_t incarnation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Undoes Close(). Requests that were refused in between stay refused.
  void Reopen() ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes the queue. A wait for a token ends with kOutOfRange. A wait for room
  // ends with kCancelled or, if `cancel_pending_enqueues` is false, is served
  // first: the close then waits in the same line, under `id`.
  //
  //   kCancelled  closed before, and `cancel_pending_enqueues` is false
  absl::StatusOr<Completions> Close(bool cancel_pending_enqueues,
                                    uint64_t id = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a waiting request with kCancelled, and serves the requests that it
  // held up. Only tokens that were not yet in the queue are lost. Empty if `id`
  // does not wait.
  Completions Cancel(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the newest incarnation of the worker that has called TakeToken(),
  // whether or not it has a token; 0: none has.
  uint64_t NewestIncarnation(int32_t worker) const ABSL_LOCKS_EXCLUDED(mutex_);
  State GetState() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The newest incarnation and pass that a worker has called with.
  struct Member {
    uint64_t incarnation = 0;
    int64_t pass = 0;
    std::optional<Lease> lease;  // of that pass
  };
  // Tokens that replaced processes of a worker held, by incarnation, until the
  // chief expires them.
  using Left = std::map<uint64_t, int64_t>;
  using WaitingList = std::deque<Waiting>;
  // Tokens that wait for room, or a plain close behind them.
  struct Adding {
    uint64_t id = 0;
    std::deque<int64_t> tokens;  // empty: a close
    bool returned = false;       // its call: a later call reports its end
  };

  WaitingList::iterator FindWaiting(uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WaitingList::iterator FindWaitingWorker(int32_t worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRequest(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckTaker(const Taker& taker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Lease* FindLease(const Taker& taker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNotDrained() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelWaiting(const WaitingList::const_iterator& waiting,
                     Completions& completed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Files a request and serves both lines.
  Completions Add(Adding adding) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Serves both lines until neither moves, since each may let the other move.
  void Serve(Completions& completed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Each returns whether anything has changed.
  bool ServeAdding(Completions& completed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ServeWaiting(Completions& completed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t capacity_;

  mutable Mutex mutex_;
  std::deque<int64_t> tokens_ ABSL_GUARDED_BY(mutex_);
  WaitingList waiting_ ABSL_GUARDED_BY(mutex_);
  std::deque<Adding> adding_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, Member> members_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, Left> left_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_COMPATIBLE_TOKEN_QUEUE_H_
