#ifndef LOCKSTEP_WORKER_READY_CHUNKS_H_
#define LOCKSTEP_WORKER_READY_CHUNKS_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "worker/chunk_plan.h"

namespace lockstep {

// ReadyChunks says which chunks can be sent while a pass goes on: those whose
// variables are all ready. It keeps the order in which they became ready,
// which is the same for every worker of a job. All must send in one order:
// servers answer a push when every worker's has come, so that workers who
// fill their windows with different chunks would wait for one another.
class ReadyChunks {
 public:
  struct Id {
    int server = 0;
    size_t chunk = 0;  // among those of the server

    bool operator==(const Id&) const = default;
  };

  // `chunks` by server, as MakeChunks() returns them, perhaps not cut alike.
  explicit ReadyChunks(const std::vector<std::vector<Chunk>>& chunks);

  // A new pass begins: nothing is ready.
  void Reset();

  // Returns the chunks that became ready with `variable`. Repeating it, or a
  // variable without a chunk, makes nothing ready.
  std::vector<Id> MarkReady(size_t variable);

  // Makes everything ready; returns what was not.
  std::vector<Id> MarkRest();

  // What is ready, by server, in the order in which it became so.
  const std::vector<std::deque<size_t>>& order() const { return order_; }

 private:
  std::vector<std::vector<size_t>> parts_;    // by server and chunk
  std::vector<std::vector<size_t>> missing_;  // parts that are not ready
  std::vector<std::vector<Id>> by_variable_;  // the chunk of each part of it
  std::vector<bool> ready_;                   // by variable
  std::vector<std::deque<size_t>> order_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_READY_CHUNKS_H_
