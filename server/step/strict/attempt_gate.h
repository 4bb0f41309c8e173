#ifndef LOCKSTEP_SERVER_STEP_STRICT_ATTEMPT_GATE_H_
#define LOCKSTEP_SERVER_STEP_STRICT_ATTEMPT_GATE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "server/step/gate.h"
#include "server/step/strict/worker_roll.h"

namespace lockstep::server {

// AttemptGate is the common base of the gates of strict mode. It keeps the
// current step and its attempt, the workers that take part, and their waits. A
// subclass decides which waits can be answered.
//
// Threads: safe to share; no call waits. Subclasses are called with the lock
//          held.
// Errors:  as Gate.
class AttemptGate : public Gate {
 public:
  std::vector<Answer> Activate(int64_t global_step) final
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Answer>> Wait(uint64_t ticket, const Pass& pass,
                                           int64_t attempt,
                                           absl::Time now) final
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Answer>> Watch(uint64_t ticket, const Pass& pass,
                                            absl::Time now) final
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(uint64_t ticket) final ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Answer> Finish() final ABSL_LOCKS_EXCLUDED(mutex_);
  void Reopen() final ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t global_step() const final ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t NewestIncarnation(int worker) const final
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Waiting> WaitingWorkers() const final ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  struct Waiter {
    uint64_t ticket;
    Pass pass;
    int64_t attempt;
    absl::Time since;
    bool computing;           // of Watch()
    bool not_needed = false;  // for Answer::not_needed
  };

  explicit AttemptGate(int total_num_replicas) : roll_(total_num_replicas) {}

  // Checks that the worker of the pass may call. Errors as Gate.
  virtual absl::Status Check(const Pass& pass) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Files the wait of a worker that has no other wait; returns the answers that
  // are ready then. The caller must have checked that no newer pass of the
  // worker is known.
  virtual std::vector<Answer> File(Waiter waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Fills in `answer` and returns true if the wait can be answered now. A token
  // may give its worker a place in the step.
  virtual bool TryAnswer(const Waiter& waiter, Answer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // True if training has ended: fills in the answer of every wait then, besides
  // its ticket.
  bool AnswerIfFinished(Answer& answer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Files the wait behind all others. The worker must have no other wait.
  void Keep(const Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null if the worker does not wait.
  const Waiter* WaitOf(int worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Answer> AnswerWaiters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // End waits with kCancelled: of workers that no longer take part, or of
  // incarnations of `worker` below `admitted`.
  std::vector<Answer> CancelLeavers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Answer> CancelWaits(int worker, uint64_t admitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the waits of incarnations up to `incarnation`, and fills in Expired.
  // The caller must have removed the worker from the step.
  Expired ExpireWaits(int worker, uint64_t incarnation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks the arguments of Commit().
  //
  //   kFailedPrecondition  not the attempt at hand of the step at hand
  absl::Status CheckCommit(int64_t step, int64_t attempt) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records the current attempt as committed and begins the next step.
  void BeginNextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  WorkerRoll roll_ ABSL_GUARDED_BY(mutex_);
  int64_t global_step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t attempt_ ABSL_GUARDED_BY(mutex_) = 1;  // counts within a step
  int64_t committed_attempt_ ABSL_GUARDED_BY(mutex_) = 0;  // of global_step_
  // The step at which this gate began.
  int64_t opened_step_ ABSL_GUARDED_BY(mutex_) = 0;
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // In order of arrival, one of each worker.
  std::map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);

 private:
  absl::StatusOr<std::vector<Answer>> Accept(const Waiter& waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Place = std::map<uint64_t, Waiter>::iterator;
  Place Remove(Place place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  // By worker, its place in waiters_: thousands of workers may wait.
  std::map<int, Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_ATTEMPT_GATE_H_
