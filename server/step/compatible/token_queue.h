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
// Threads: safe to share. No call waits: a request that cannot be answered yet
//          is stored under its id, and the call that ends it returns it.
// Errors:  a call that fails has changed nothing.
class TokenQueue {
 public:
  // A request that has ended. kOk: it has a token; kCancelled; kOutOfRange: the
  // queue was closed.
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
    Taker taker;
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
    bool closed = false;
  };

  // Adds tokens in order; returns the requests that they end. Adding none
  // succeeds even on a closed queue.
  //
  //   kCancelled  the queue is closed
  absl::StatusOr<Completions> EnqueueMany(absl::Span<const int64_t> tokens)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests a token under `id`, with a lease. The result is empty if the
  // request must wait. A repeated call for the same pass never takes a second
  // token: it returns the first one or, if the earlier call still waits, takes
  // over its place in the line and ends it with kCancelled. A call for a later
  // pass, or of a newer incarnation, settles the worker's lease and ends an
  // older wait with kCancelled.
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
  // Closes the queue: ends the waits that the queued tokens do not, with
  // kOutOfRange.
  Completions Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a waiting request with kCancelled. Empty if `id` does not wait.
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
  // Gives tokens to the requests that wait; ends them all if there is none and
  // the queue is closed.
  void Serve(Completions& completed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::deque<int64_t> tokens_ ABSL_GUARDED_BY(mutex_);
  WaitingList waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, Member> members_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, Left> left_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_COMPATIBLE_TOKEN_QUEUE_H_
