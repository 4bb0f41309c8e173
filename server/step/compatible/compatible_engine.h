#ifndef LOCKSTEP_SERVER_STEP_COMPATIBLE_COMPATIBLE_ENGINE_H_
#define LOCKSTEP_SERVER_STEP_COMPATIBLE_COMPATIBLE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/base/mutex.h"
#include "common/numeric/dtype.h"
#include "server/step/chief_wait.h"
#include "server/step/compatible/gradient_accumulator.h"
#include "server/step/compatible/sparse_accumulator.h"
#include "server/step/engine.h"

namespace lockstep::server {

// The properties of a part that CompatibleEngine needs.
struct CompatiblePart {
  DType dtype = DType::kFloat32;
  // Rows of a part with sparse gradients; none: its gradients are dense.
  std::optional<int64_t> sparse_rows = {};
};

// CompatibleEngine works as TensorFlow does: one gradient accumulator per part,
// sums in order of arrival, and a part updated in place as soon as its own
// accumulator is full. Workers may differ from part to part, and a worker may
// count twice. Rows of sparse gradients are merged in the order in which they
// come, even if they are not sorted; but an index that the part does not have
// is refused.
//
// Beyond TensorFlow, a push counts at most once per (worker, incarnation, pass,
// part), and its answer has the outcome.
//
// Threads: safe to share. An update runs in the thread of the push or take
//          that completed the part, with no lock held.
// Borrows: the updater.
class CompatibleEngine final : public Engine {
 public:
  // `parts` are those of the updater. `on_pass`, if it is set, is called when
  // each part has answered its gradient of a pass, with any outcome; no lock is
  // held.
  CompatibleEngine(int replicas_to_aggregate, std::vector<CompatiblePart> parts,
                   PartUpdater& updater,
                   std::function<void(const Pass&)> on_pass = nullptr);

  // May be called again, by a chief that has started again: gradients that have
  // arrived stay counted; parts that the current step has updated stay updated,
  // and will be updated again.
  void Activate(int64_t global_step) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the takes of a chief that is gone. Until the next Activate(),
  // gradients are collected but update nothing.
  void StopTakes() ABSL_LOCKS_EXCLUDED(mutex_);

  // The number of gradients that a part has collected.
  int64_t num_accumulated(int part) const;

  absl::StatusOr<ShardAnswers> AddPush(uint64_t ticket, Push push) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> Take(uint64_t ticket, int64_t step) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelTake(uint64_t ticket) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckCommit(int64_t step, int64_t attempt) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> Commit(int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Every value is the newest one: nothing depends on the commit.
  absl::Status CheckReached(int64_t) override { return absl::OkStatus(); }
  ShardAnswers StartAttempt(int64_t, int64_t) override { return {}; }
  void SetReplicas(int replicas_to_aggregate) override {
    replicas_to_aggregate_ = replicas_to_aggregate;
  }
  // No update waits for readers: updates write to no lent memory.
  ShardAnswers PartReturned(int) override { return {}; }
  int64_t step() const override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckWhole(int64_t step) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::string WaitsFor() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The newest push of a worker that a part has accepted.
  struct Accepted {
    uint64_t incarnation = 0;
    int64_t pass = 0;
  };

  // The parts that have answered their gradients of a worker's newest pass.
  struct Arrived {
    uint64_t incarnation = 0;
    int64_t pass = 0;
    std::set<int> parts = {};
  };

  using Accumulator = std::variant<std::unique_ptr<GradientAccumulator>,
                                   std::unique_ptr<SparseAccumulator>>;

  absl::Status CheckForm(const Push& push) const;
  absl::Status CheckGradient(int part, const PartGradient& gradient) const;
  absl::Status CheckRows(int part, const PartGradient& gradient) const;
  // True if the push counted before. Otherwise records that it counts; Forget()
  // undoes that.
  bool IsDuplicate(int part, const Pass& pass) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(int part, const Pass& pass) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<PushOutcome> AddPart(int part, const Pass& pass,
                                      const PartGradient& gradient,
                                      ShardAnswers& answers);
  template <typename Completed>
  void Update(int part, const std::vector<Completed>& completed,
              ShardAnswers& answers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that `count` parts from `first` on have answered their gradients of
  // the pass. True once all parts of this server have.
  bool Arrive(const Pass& pass, int first, size_t count)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status UpdatePart(int part, const DenseGradient& mean);
  absl::Status UpdatePart(int part, const SparseGradient& mean);
  absl::Status TakePart(int part, int64_t step, ShardAnswers& answers);
  // Changes the number of gradients that a waiting take of TakePart() needs.
  void RequirePart(int part, int64_t step, ShardAnswers& answers);
  bool all_updated() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return updated_parts_ == updater_.num_parts() && failure_.ok();
  }
  // Answers the chief's wait if the step is complete or has failed.
  void AnswerTake(ShardAnswers& answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckCommitLocked(int64_t step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CommitLocked(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<int> replicas_to_aggregate_;
  const std::vector<CompatiblePart> parts_;
  PartUpdater& updater_;
  const std::function<void(const Pass&)> on_pass_;
  // One per part; they lock themselves.
  std::vector<Accumulator> accumulators_;

  mutable Mutex mutex_;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  bool taking_ ABSL_GUARDED_BY(mutex_) = false;  // accumulators hold a take
  int updated_parts_ ABSL_GUARDED_BY(mutex_) = 0;
  // The step at hand has begun to change parts. Set before the first change.
  bool changing_ ABSL_GUARDED_BY(mutex_) = false;
  // The failure of an update: the step can neither be completed nor undone.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  ChiefWait take_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::map<int, Accepted>> accepted_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Arrived> arrived_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_COMPATIBLE_COMPATIBLE_ENGINE_H_
