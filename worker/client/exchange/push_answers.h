#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_PUSH_ANSWERS_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_PUSH_ANSWERS_H_

#include <cstddef>
#include <set>
#include <vector>

#include "common/plan/step_vocabulary.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/chunks/ready_chunks.h"
#include "worker/client/exchange/push_id.h"
#include "worker/loop/step_client.h"

namespace lockstep::worker {

// PushAnswers records the answers to one push, and decides which of the values
// that they bring may be used.
//
// Threads: not thread-safe.
class PushAnswers {
 public:
  PushAnswers(const PushId& push, int num_servers)
      : push_(push), through_(num_servers) {}

  const PushId& push() const { return push_; }

  // Must be called for each part of a chunk that is answered.
  void Count(PushOutcome outcome);
  // Must be called when a chunk has been answered, after HeldChunks::Hold() if
  // the answer has brought its values. A call that failed is no answer.
  void MarkThrough(const ReadyChunks::Id& chunk);

  const PushCounts& counts() const { return counts_; }

  enum class Values {
    kAwaited,  // chunks that are not answered may bring them
    kHeld,     // memory holds the values of all chunks
    kLacking,  // some chunk was answered without values
  };
  // Tells whether answers have brought the values of `chunks`. Removes chunks
  // whose values are held from the end of the list, so that the next call with
  // it looks only at the others.
  Values ValuesOf(std::vector<ReadyChunks::Id>& chunks,
                  const HeldChunks& held) const;

 private:
  const PushId push_;
  PushCounts counts_;
  std::vector<std::set<size_t>> through_;  // by server
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_PUSH_ANSWERS_H_
