#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_PASS_SENDS_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_PASS_SENDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/chunks/ready_chunks.h"
#include "worker/client/exchange/push_id.h"
#include "worker/loop/step_client.h"

namespace lockstep::worker {

// PassSends decides what a client sends for a pass, and when: which chunks of
// gradients, and whether the call for the next token comes before the rest of
// them. Its methods correspond to those of StepClient.
//
// Threads: not thread-safe, but threads that send a chunk may read the elements
//          of absent() of the chunk's variables.
class PassSends {
 public:
  using Chunks = std::vector<ReadyChunks::Id>;

  explicit PassSends(const HeldChunks& chunks);

  // Must be called whenever chunks were cut anew, while no push is under way.
  void OnNewChunks(const HeldChunks& chunks);

  // No push may be under way.
  void BeginPass(StepClient::PassKind kind);

  // Marks the variable as one without a gradient.
  void MarkAbsent(size_t variable) { absent_[variable] = 1; }
  // By variable: 1 if the pass has no gradient for it.
  absl::Span<const uint8_t> absent() const { return absent_; }

  // Returns the chunks that must be sent now that `variable` is ready. Without
  // a push they are kept for BeginPush().
  Chunks MarkReady(size_t variable);

  // Begins a push; no other may be under way. Returns by server the chunks that
  // must be sent now, in order.
  const std::vector<std::deque<size_t>>& BeginPush(const PushId& push);

  // The actions of StepClient::SendRest(), in the order in which they must
  // happen.
  struct Rest {
    bool sends_token_call = false;  // as TakeToken() would
    bool begins_push = false;       // with BeginPush()
    bool sends_chunks = false;      // those that MarkRest() returns
  };
  Rest RestOf(const PushId& push) const;
  // Makes all variables ready, and returns the chunks not returned yet. A push
  // must be under way.
  Chunks MarkRest();

  // The push has been answered, or is given up.
  void EndPush() { push_.reset(); }
  // The push under way.
  const std::optional<PushId>& push() const { return push_; }

  // The chunks of variables [first, first + count).
  Chunks ChunksOf(size_t first, size_t count) const;

 private:
  // Not vector<bool>, whose elements share bytes: threads that send chunks read
  // the elements of ready variables while the owner's thread writes others.
  std::vector<uint8_t> absent_;
  ReadyChunks ready_;
  bool token_early_ = true;
  std::optional<PushId> push_;
  bool rest_sent_ = false;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_PASS_SENDS_H_
