#ifndef LOCKSTEP_SERVER_STEP_STRICT_STRICT_GATE_H_
#define LOCKSTEP_SERVER_STEP_STRICT_STRICT_GATE_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/step/strict/announcements.h"
#include "server/step/strict/attempt_gate.h"

namespace lockstep::server {

// StrictGate is the gate of strict mode: it chooses the one set of
// gradients that counts for a step.
//
// A step's set is the first `replicas_to_aggregate` announcements. A member
// that is dead is replaced by the next worker that announced; one that holds up
// the step, by the next one that waits with its gradient. The step then starts
// a new attempt:
//
//   announced -> member -> (commit) -> next step
//       |           `-> (died, replaced) -> attempt + 1: members push again
//       `-> not needed, until a member goes
//
// If N = A every worker is needed, so a token makes its worker a member of the
// step, without an announcement.
//
// If N < A each worker has several shares of a step, its slots, and makes one
// pass for each. In a new attempt each worker begins with slot 0 again.
//
// Threads: safe to share; no call waits.
// Errors:  as Gate.
class StrictGate final : public AttemptGate {
 public:
  struct Options {
    int replicas_to_aggregate = 1;  // A, > 0
    int total_num_replicas = 1;     // N, > 0
  };

  explicit StrictGate(const Options& options);

  std::vector<Answer> Redo(int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Answer> SetReplicas(int replicas_to_aggregate,
                                  const std::vector<int>& workers) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Announced> Announce(const Pass& pass) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  Expired Expire(int worker, uint64_t incarnation) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  Replaced Replace(int worker, int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Answer>> Commit(int64_t step,
                                             int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<int> Members() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool Counts(const Pass& pass) const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Check(const Pass& pass) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Answer> File(Waiter waiter) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryAnswer(const Waiter& waiter, Answer& answer) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The number of entries of announced_ that are the set so far.
  size_t NumMembers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the worker waits after the pass, so that its gradient is ready.
  bool IsReady(const Pass& pass) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsMember(const Pass& pass) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if this gate committed the step of the pass without the worker.
  bool PassedOver(const Pass& pass) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int FirstMissingSlot(int worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the pass after `ended` a member of the step at hand.
  void Select(const Pass& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Files again a pass that was announced to an earlier process of this task.
  void Recall(const Pass& pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartAttempt(int64_t attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DropAnnouncements(int worker, uint64_t incarnation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Shares of a step that `worker` computes: 1 unless N < A.
  int Quota(int worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int num_workers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return roll_.count();
  }
  bool all_workers_count() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return num_workers() == replicas_;
  }
  // True if workers have several shares of a step.
  bool has_shares() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return num_workers() < replicas_;
  }

  int replicas_ ABSL_GUARDED_BY(mutex_);  // A, as it is now
  // The step that Redo() restarted last; announcements of it may be lost.
  int64_t redone_step_ ABSL_GUARDED_BY(mutex_) = -1;
  // If N < A: the shares (worker, slot) that were pushed for the attempt at
  // hand. An announcement does not prove a push: it may have been delayed, and
  // its worker may no longer hold the gradient.
  std::set<std::pair<int, int>> pushed_ ABSL_GUARDED_BY(mutex_);
  // In order of arrival; the first A are the members.
  Announcements announced_ ABSL_GUARDED_BY(mutex_);
  // By worker: the newest step committed by this gate with the worker in its
  // set.
  std::map<int, int64_t> counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_STRICT_GATE_H_
