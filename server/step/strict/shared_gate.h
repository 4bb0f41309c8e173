#ifndef LOCKSTEP_SERVER_STEP_STRICT_SHARED_GATE_H_
#define LOCKSTEP_SERVER_STEP_STRICT_SHARED_GATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/step/strict/attempt_gate.h"
#include "server/step/strict/share_numbers.h"

namespace lockstep::server {

// SharedGate is the gate of strict mode with shared work: a step is a fixed
// number of micro-batches, and each worker computes one number after the other.
//
// A token names a number, its slot. A worker announces it before it sends the
// gradient; a number that is done is not needed any more. A wait after a pass
// that was pushed means that all servers have the gradient: the number is done,
// which ends the Watch() of the other workers that compute it.
//
//   Wait --token--> (compute) --Announce--> (push) --Wait--> done, next token
//
// Numbers are handed out in blocks; a worker pushes the sum of a block. The
// size of a block is the power of two that cuts the step into as many blocks as
// SetReplicas() sets. A token names the first number of a block and its size,
// and so do all calls of the pass. A pass whose block has another size than the
// current one is not needed: its step has begun again, and its gradient is no
// term of the new sum.
//
// A step takes all numbers, so it has no set of workers: Members() is empty. If
// a worker dies its number is free again, and the step continues with the same
// attempt: gradients that it has pushed still count. Redo() begins the step
// again; a worker that still has the gradient of a number gets kRedo and pushes
// it again.
//
// Threads: safe to share; no call waits.
// Errors:  as Gate.
class SharedGate final : public AttemptGate {
 public:
  struct Options {
    int numbers = 1;             // > 0, micro-batches of a step
    int total_num_replicas = 1;  // N, > 0
    int block = 1;               // numbers of a block at first, a power of two
  };

  explicit SharedGate(const Options& options);

  std::vector<Answer> Redo(int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `replicas_to_aggregate` is the number of blocks from the next attempt on.
  // No effect on blocks unless BlockSizeOf() has a size for it.
  std::vector<Answer> SetReplicas(int replicas_to_aggregate,
                                  const std::vector<int>& workers) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Announced> Announce(const Pass& pass) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  Expired Expire(int worker, uint64_t incarnation) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // No effect: an idle worker repeats the number of one that holds up the step.
  Replaced Replace(int worker, int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Answer>> Commit(int64_t step,
                                             int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<int> Members() const override { return {}; }
  bool Counts(const Pass& pass) const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Check(const Pass& pass) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Answer> File(Waiter waiter) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A watch is answered when the number of its pass is done, too.
  bool TryAnswer(const Waiter& waiter, Answer& answer) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // True if the pass computed a block of the size at hand.
  bool HasBlock(const Pass& pass) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return pass.block == block_;
  }
  // Returns the pass with the index of its block as its slot, as `blocks_` has
  // it.
  Pass OfBlock(Pass pass) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pass.slot /= block_;
    return pass;
  }

  // Begins to hand out blocks of the size that SetReplicas() has set.
  void Regroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int numbers_;
  int block_ ABSL_GUARDED_BY(mutex_);
  int next_block_ ABSL_GUARDED_BY(mutex_);
  ShareNumbers blocks_ ABSL_GUARDED_BY(mutex_);  // of the step at hand
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_SHARED_GATE_H_
