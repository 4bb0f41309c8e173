#ifndef LOCKSTEP_SERVER_STEP_STRICT_SHARED_GATE_H_
#define LOCKSTEP_SERVER_STEP_STRICT_SHARED_GATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "server/step/gate.h"
#include "server/step/strict/share_numbers.h"
#include "server/step/strict/worker_roll.h"

namespace lockstep::server {

// SharedGate is the gate of strict mode with shared work: a step is a fixed
// number of micro-batches, and each worker computes one number after the other.
//
// A token names a number, its slot. A worker announces it before it sends the
// gradient; a number that is done is not needed any more. A wait after a pass
// that was pushed says that all servers have the gradient: the number is done,
// and the other workers that compute it are told so through Watch().
//
//   Wait --token--> (compute) --Announce--> (push) --Wait--> done, next token
//
// A step takes all numbers, so it has no set of workers: Members() is empty. A
// worker that dies gives its number back, and the step goes on with the same
// attempt: gradients that it has pushed still count. Redo() begins anew; a
// worker that still has the gradient of a number is told to push it again.
//
// Threads: safe to share; no call waits.
// Errors:  as Gate.
class SharedGate final : public Gate {
 public:
  struct Options {
    int numbers = 1;             // > 0, micro-batches of a step
    int total_num_replicas = 1;  // N, > 0
  };

  explicit SharedGate(const Options& options);

  std::vector<Answer> Activate(int64_t global_step) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Answer> Redo(int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of gradients of a step does not change.
  std::vector<Answer> SetReplicas(int replicas_to_aggregate,
                                  const std::vector<int>& workers) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Announced> Announce(const Pass& pass) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Answer>> Wait(uint64_t ticket, const Pass& pass,
                                           int64_t attempt,
                                           absl::Time now) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The answer comes when the number of the pass is done, too.
  absl::StatusOr<std::vector<Answer>> Watch(uint64_t ticket, const Pass& pass,
                                            absl::Time now) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(uint64_t ticket) override ABSL_LOCKS_EXCLUDED(mutex_);
  Expired Expire(int worker, uint64_t incarnation) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // No effect: an idle worker repeats the number of one that holds up the step.
  Replaced Replace(int worker, int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Answer>> Commit(int64_t step,
                                             int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Answer> Finish() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Reopen() override ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t global_step() const override ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t NewestIncarnation(int worker) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<int> Members() const override { return {}; }
  std::vector<Waiting> WaitingWorkers() const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Counts(const Pass& pass) const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    uint64_t ticket;
    Pass pass;
    int64_t attempt;
    absl::Time since;
    bool computing;           // of Watch()
    bool not_needed = false;  // another worker has finished the pass's number
  };

  absl::Status Check(const Pass& pass) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Files a wait in place of the worker's older one.
  absl::StatusOr<std::vector<Answer>> File(Waiter waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryAnswer(const Waiter& waiter, Answer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Answer> AnswerWaiters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers the worker's wait, if it has one, with kCancelled.
  std::vector<Answer> CancelWaits(int worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  WorkerRoll roll_ ABSL_GUARDED_BY(mutex_);
  ShareNumbers numbers_ ABSL_GUARDED_BY(mutex_);  // of the step at hand
  int64_t global_step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t attempt_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t committed_attempt_ ABSL_GUARDED_BY(mutex_) = 0;  // of global_step_
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_SHARED_GATE_H_
