#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_READY_CHUNKS_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_READY_CHUNKS_H_

#include <cstddef>
#include <deque>
#include <set>
#include <vector>

#include "worker/client/chunks/chunk_plan.h"

namespace lockstep::worker {

// ReadyChunks decides which chunks are sent while a pass is computed: those
// whose variables are all ready, in an order that is the same for every worker
// of a step. All workers must send in one order: a server answers the push of a
// chunk when it has that of every worker, so workers whose windows hold
// different chunks would wait for one another forever.
//
// Threads: not thread-safe.
class ReadyChunks {
 public:
  enum class Order {
    // In the order in which they become ready: the last layer's first.
    kAsReady,
    // For a next pass that begins while chunks are still under way: every third
    // chunk of a server comes behind all the others, and of these the first
    // layer's, which is needed first, comes first. A third, since a forward
    // pass is about a third of a pass: with compute and transfer of equal
    // length both go on all the time.
    kThirdsLast,
  };

  struct Id {
    int server = 0;
    size_t chunk = 0;  // among those of the server

    bool operator==(const Id&) const = default;
  };

  // `chunks` by server, as MakeChunks() returns them; each server may be cut
  // with another target.
  explicit ReadyChunks(const std::vector<std::vector<Chunk>>& chunks);

  // Begins a new pass: no variable is ready.
  void Reset(Order order);

  // Returns the chunks that may be sent now that `variable` is ready. Has no
  // effect for a variable that is ready already or has no chunk.
  std::vector<Id> MarkReady(size_t variable);

  // Makes all variables ready; returns the chunks not returned yet.
  std::vector<Id> MarkRest();

  // The chunks that have been returned, by server, in order.
  const std::vector<std::deque<size_t>>& order() const { return order_; }

  // Makes the order kAsReady until the next pass, also for chunks that have
  // been returned. Must be called before a push that sends all chunks again.
  void KeepNothingBack();

  // The chunks that hold parts of a variable, one for each part.
  const std::vector<Id>& ChunksOf(size_t variable) const;

 private:
  bool ComesLast(size_t chunk) const {
    return policy_ == Order::kThirdsLast && chunk % 3 == 2;
  }
  // Handles a chunk that has become ready: appends the chunks that may be sent
  // now to `sent`.
  void Release(const Id& id, std::vector<Id>& sent);
  void Send(const Id& id, std::vector<Id>& sent);

  Order policy_ = Order::kAsReady;
  std::vector<std::vector<size_t>> parts_;    // by server and chunk
  std::vector<std::vector<size_t>> missing_;  // parts that are not ready
  std::vector<std::vector<Id>> by_variable_;  // the chunk of each part of it
  std::vector<bool> ready_;                   // by variable
  // By server: the number of chunks not sent yet that do not come last.
  std::vector<size_t> first_left_;
  std::vector<std::set<size_t>> kept_;  // by server: ready chunks for later
  std::vector<std::deque<size_t>> order_;
  std::vector<std::deque<size_t>> as_ready_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_READY_CHUNKS_H_
