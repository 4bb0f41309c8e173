#include "tests/golden/bounded_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/time.h"
#include "common/base/status_macros.h"

namespace lockstep::golden {
namespace {

void Append(BoundedQueue::Completions more,
            BoundedQueue::Completions& completed) {
  completed.insert(completed.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

}  // namespace

absl::StatusOr<BoundedQueue::Completions> BoundedQueue::Enqueue(
    absl::Span<const int64_t> tokens, uint64_t id) {
  if (tokens.empty()) return Completions();
  if (closed()) return absl::CancelledError("the queue is closed");
  return Add({id, {tokens.begin(), tokens.end()}});
}

absl::StatusOr<BoundedQueue::Completions> BoundedQueue::Dequeue(uint64_t id) {
  // A worker that takes one token in its life is none that a lease or a
  // repeated call could concern.
  const server::TokenQueue::Taker alone{static_cast<int32_t>(id), 1, 1};
  LOCKSTEP_ASSIGN_OR_RETURN(Completions completed,
                            queue_.TakeToken(id, alone, absl::UnixEpoch()));
  Serve(completed);
  return completed;
}

absl::StatusOr<BoundedQueue::Completions> BoundedQueue::Close(
    bool cancel_pending_enqueues, uint64_t id) {
  if (!cancel_pending_enqueues) {
    // An entry without tokens is a close in the line.
    if (!closed()) return Add({id, {}});
    return absl::CancelledError("the queue is closed already");
  }
  Completions completed = queue_.Close();
  Serve(completed);
  return completed;
}

BoundedQueue::Completions BoundedQueue::Cancel(uint64_t id) {
  Completions completed = queue_.Cancel(id);
  const auto adding =
      std::find_if(adding_.begin(), adding_.end(),
                   [id](const Adding& a) { return a.id == id; });
  if (!completed.empty() || adding == adding_.end()) return completed;
  completed.push_back({id, absl::CancelledError("the wait was cancelled"), 0});
  // The requests behind this one may have room now.
  adding_.erase(adding);
  Serve(completed);
  return completed;
}

bool BoundedQueue::IsAdding(uint64_t id) const {
  return std::any_of(adding_.begin(), adding_.end(),
                     [id](const Adding& a) { return a.id == id; });
}

BoundedQueue::Completions BoundedQueue::Add(Adding adding) {
  Completions completed;
  adding_.push_back(std::move(adding));
  Serve(completed);
  // If anything is left, the new request is: it is the last in the line. Its
  // call returns now, so a later call reports its end.
  if (!adding_.empty()) adding_.back().returned = true;
  return completed;
}

void BoundedQueue::Serve(Completions& completed) {
  while (!adding_.empty()) {
    Adding& head = adding_.front();
    // Read first: a close must not refuse itself, only the requests behind it.
    const bool refused = closed();
    if (!refused && !ServeHead(head, completed)) return;
    if (head.returned) {
      completed.push_back({head.id,
                           refused ? absl::CancelledError("the queue is closed")
                                   : absl::OkStatus(),
                           0});
    }
    adding_.pop_front();
  }
}

bool BoundedQueue::ServeHead(Adding& head, Completions& completed) {
  if (head.tokens.empty()) Append(queue_.Close(), completed);
  while (!head.tokens.empty()) {
    if (capacity_ != kNoLimit &&
        static_cast<int64_t>(queue_.size()) >= capacity_) {
      return false;
    }
    Append(queue_.EnqueueMany({head.tokens.front()}).value(), completed);
    head.tokens.pop_front();
  }
  return true;
}

}  // namespace lockstep::golden
