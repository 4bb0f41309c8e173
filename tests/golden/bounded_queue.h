#ifndef LOCKSTEP_TESTS_GOLDEN_BOUNDED_QUEUE_H_
#define LOCKSTEP_TESTS_GOLDEN_BOUNDED_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/step/compatible/token_queue.h"

namespace lockstep::golden {

// BoundedQueue is a TokenQueue with what TensorFlow's queue has besides and
// training does not use: a capacity, dequeues without a worker, and plain
// closes. Tokens beyond the capacity wait, in one line with these closes.
//
// Errors: a call that fails has changed nothing.
class BoundedQueue {
 public:
  using Completions = server::TokenQueue::Completions;
  static constexpr int64_t kNoLimit = -1;

  // `capacity` is the largest number of tokens, > 0, or kNoLimit.
  explicit BoundedQueue(int64_t capacity) : capacity_(capacity) {}

  // As TokenQueue::EnqueueMany(). Tokens beyond the capacity wait under `id`;
  // the call that makes room returns it.
  absl::StatusOr<Completions> Enqueue(absl::Span<const int64_t> tokens,
                                      uint64_t id);

  // Requests a token under `id`, which no request had before. The result is
  // empty if the request must wait.
  //
  //   kOutOfRange  the queue is closed and empty
  absl::StatusOr<Completions> Dequeue(uint64_t id);

  // As TokenQueue::Close(). A wait for room ends with kCancelled or, if
  // `cancel_pending_enqueues` is false, is served first: the close then waits
  // in the same line, under `id`.
  //
  //   kCancelled  closed before, and `cancel_pending_enqueues` is false
  absl::StatusOr<Completions> Close(bool cancel_pending_enqueues, uint64_t id);

  // Ends a waiting request with kCancelled, and serves the requests that it
  // held up. Empty if `id` does not wait.
  Completions Cancel(uint64_t id);

  // True for a request that waits for room, or behind one that does.
  bool IsAdding(uint64_t id) const;
  size_t size() const { return queue_.size(); }

 private:
  // Tokens that wait for room, or a plain close behind them.
  struct Adding {
    uint64_t id = 0;
    std::deque<int64_t> tokens;  // empty: a close
    bool returned = false;       // its call: a later call reports its end
  };

  bool closed() const { return queue_.GetState().closed; }
  // Files a request and serves the line.
  Completions Add(Adding adding);
  void Serve(Completions& completed);
  // Returns false if the request at the head of the line must wait for room.
  bool ServeHead(Adding& head, Completions& completed);

  const int64_t capacity_;
  server::TokenQueue queue_;
  std::deque<Adding> adding_;
};

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_BOUNDED_QUEUE_H_
