#ifndef LOCKSTEP_SERVER_STEP_COMPATIBLE_COMPATIBLE_GATE_H_
#define LOCKSTEP_SERVER_STEP_COMPATIBLE_COMPATIBLE_GATE_H_

#include <cstdint>
#include <vector>

#include "common/base/mutex.h"
#include "server/step/compatible/token_queue.h"
#include "server/step/gate.h"

namespace lockstep::server {

// CompatibleGate is the gate of compatible mode: TensorFlow's token queue. A
// worker that takes a token may compute, however often and however late; the
// accumulators accept or drop each gradient by its step. Workers announce no
// gradients.
//
// Beyond TensorFlow, tokens are leased: a repeated take gets the same token,
// and the token of a dead worker returns to the front of the queue, unless it
// is used: all gradients of its pass have arrived, or the worker has requested
// the next token.
//
// Threads: safe to share; no call waits.
// Errors:  as Gate.
class CompatibleGate final : public Gate {
 public:
  struct Options {
    int initial_tokens = 0;      // issued by Activate()
    int tokens_per_step = 1;     // max(N, A), issued by each Commit()
    int total_num_replicas = 1;  // N
  };

  explicit CompatibleGate(const Options& options)
      : options_(options), tokens_per_step_(options.tokens_per_step) {}

  std::vector<Answer> Activate(int64_t global_step) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Issues the initial tokens once more, for the current global step, as
  // TensorFlow's chief does after a restart. Lockstep's does not: only the
  // replays of TensorFlow's traces call this.
  std::vector<Answer> IssueInitialTokens();
  absl::StatusOr<Announced> Announce(const Pass& pass) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // No effect: a gradient that an accumulator has taken cannot be requested
  // again.
  std::vector<Answer> Redo(int64_t /*attempt*/) override { return {}; }
  // If a step needs more tokens than before, issues the missing ones for the
  // current global step. Tokens beyond a smaller number stay with their
  // workers.
  std::vector<Answer> SetReplicas(int replicas_to_aggregate,
                                  const std::vector<int>& workers) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Answer>> Wait(uint64_t ticket, const Pass& pass,
                                           int64_t attempt,
                                           absl::Time now) override;
  absl::StatusOr<std::vector<Answer>> Watch(uint64_t ticket, const Pass& pass,
                                            absl::Time now) override;
  void Cancel(uint64_t ticket) override;
  void FinishPass(const Pass& pass) override;
  Expired Expire(int worker, uint64_t incarnation) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // No effect: this gate does not wait for particular workers.
  Replaced Replace(int, int64_t, int64_t) override {
    Replaced none;
    none.step = global_step();
    return none;
  }
  absl::StatusOr<std::vector<Answer>> Commit(int64_t step,
                                             int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Answer> Finish() override;
  void Reopen() override { queue_.Reopen(); }
  int64_t global_step() const override ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t NewestIncarnation(int worker) const override;
  std::vector<int> Members() const override { return {}; }
  std::vector<Waiting> WaitingWorkers() const override;
  // Returns the tokens in the queue, front first.
  std::vector<int64_t> tokens() const { return queue_.GetState().tokens; }

 private:
  std::vector<Answer> Issue(int count, int64_t step);

  const Options options_;
  TokenQueue queue_;  // locks itself; never called with mutex_ held

  mutable Mutex mutex_;
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t global_step_ ABSL_GUARDED_BY(mutex_) = 0;
  int tokens_per_step_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_COMPATIBLE_COMPATIBLE_GATE_H_
