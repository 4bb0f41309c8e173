#ifndef LOCKSTEP_SERVER_STEP_STRICT_STRICT_ENGINE_H_
#define LOCKSTEP_SERVER_STEP_STRICT_STRICT_ENGINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/mutex.h"
#include "server/step/chief_wait.h"
#include "server/step/engine.h"
#include "server/step/strict/mean_squares.h"
#include "server/step/strict/mirror_parts.h"
#include "server/step/strict/part_work.h"
#include "server/step/strict/pending_pushes.h"

namespace lockstep::server {

// StrictEngine collects, part by part, the gradients of the one set of passes
// that counts for a step. It updates a part when its last gradient has arrived,
// and sums by worker and slot, so that the bits do not depend on the order of
// arrival.
//
// On ps task 0 the gate decides which gradients count. The other servers do not
// know the set: only chosen passes push, so a part is complete with
// `replicas_to_aggregate` gradients of one attempt. TakeAnswer::contributors
// reports their workers to the chief, and the chief's commit passes them to ps
// task 0, which begins the step again if they are not the members of its set.
//
// A push is answered when its parts are updated. This bounds the memory of a
// server to the pushes that workers have in flight. A worker that repeats a
// push no longer reads the earlier call, so only the newest two calls per
// worker and part are kept. A push is answered at once in two cases: if N < A,
// because the worker needs the answer to begin its next share; and if work is
// shared, because the worker then takes the next number.
//
// A newer attempt drops the gradients of older ones; the committed values stay
// unchanged until Commit(). Only the chief begins attempts: a push for a later
// attempt is refused, so that no worker can shut out the others.
//
// A push may ask for the updated values. They are lent, not copied, and the
// next update of the part waits until their readers have returned them.
//
//   collecting -> (all parts updated) prepared -> (commit) collecting
//        ^-------------- newer attempt --------------'
//
// In a mirrored job every server has all parts and reduces some: it keeps the
// mean of their gradients, lends it to the other servers, and updates from it.
// The means of the other parts come from the servers that reduce them, so that
// all copies are updated from the same bytes.
//
// The gradient of a table covers some of its rows, or none. A gradient without
// rows counts as well: a part is complete when the whole set has pushed.
//
// Threads: safe to share. Updates run in the thread of the push that completed
//          the part, with no lock held.
// Borrows: the updater.
class StrictEngine final : public Engine {
 public:
  struct Options {
    int replicas_to_aggregate = 1;  // A, > 0; SetReplicas() changes it
    int total_num_replicas = 1;     // N, > 0
    // Work is shared: A gradients per step, each of a block of numbers, the
    // first of which is its slot. Gradients are passed on in the order of the
    // numbers, and the first one of a block counts, whichever worker has
    // computed it.
    bool shared = false;
    bool refuse_non_finite = true;
    // On ps task 0: its gate, borrowed, which alone commits steps of the job.
    // Null on other servers, which learn of a commit from the chief.
    const Gate* gate = nullptr;
    // Limits the norm of the mean gradients over all servers: parts are updated
    // only when that norm is known, and pushes are answered before.
    bool limit_mean = false;
    // This server has all parts of the job, so it computes that norm itself.
    bool has_all_parts = false;
    // By part: true if another server sums its gradients. Empty unless the job
    // is mirrored.
    std::vector<bool> copied = {};
    // Called at each commit, after which a mirror wants other means. Must
    // return at once, since a lock is held. May be null.
    std::function<void()> on_commit = nullptr;
  };

  StrictEngine(const Options& options, PartUpdater& updater);

  void Activate(int64_t global_step) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> AddPush(uint64_t ticket, Push push) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> Take(uint64_t ticket, int64_t step) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  ShardAnswers ApplyNorm(int64_t step, const MeanNorm& norm) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::optional<std::vector<PartGradient>>> Means(
      int64_t step, int64_t attempt, int first_part,
      int num_parts) const override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> AddMeans(
      int64_t step, int64_t attempt, int first_part,
      std::vector<PartGradient> means) override ABSL_LOCKS_EXCLUDED(mutex_);
  MeansWanted means_wanted() const override ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelTake(uint64_t ticket) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<ShardAnswers::Prepared> WaitsForCommit() const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckCommit(int64_t step, int64_t attempt) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> Commit(int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckReached(int64_t step) override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetReplicas(int replicas_to_aggregate) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  ShardAnswers PartReturned(int part) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<int> BlockedParts() const override ABSL_LOCKS_EXCLUDED(mutex_);
  ShardAnswers StartAttempt(int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  Arrivals arrivals() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasGradientOf(const Pass& pass, int64_t attempt) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t step() const override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string WaitsFor() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Part {
    std::map<Contributor, Contribution> collected;
    bool updating = false;  // a thread is in PartUpdater::Update
    bool updated = false;
  };
  // True if the gradient of a pass of the current step counts, as far as this
  // server knows.
  bool IsChosen(const Pass& pass) const;
  void Collect(const std::shared_ptr<PendingPush>& pending, Push& push,
               std::vector<PartWork>& work, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins work on the part for the attempt at hand.
  PartWork BeginWork(PartWork::Kind kind, int part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeWork(int part, std::vector<PartWork>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The updates of all parts, now that the norm of their gradients is known.
  std::vector<PartWork> MakeUpdates(double norm)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As Run(), on as many processors as are worth it.
  ShardAnswers RunAll(std::vector<PartWork> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the caller must do the work now. Work of an older attempt is
  // dropped; work on memory that has readers moves to blocked_.
  bool MayRun(PartWork& item, std::vector<PartWork>& work,
              ShardAnswers& answers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins the work of the attempt at hand on a part, now that work of an older
  // attempt on it has ended.
  void OnStaleWorkEnded(int part, std::vector<PartWork>& work,
                        ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Updates parts until no work is left; returns what became ready.
  ShardAnswers Run(std::vector<PartWork> work) ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishPart(const PartWork& done, const absl::Status& status,
                  std::vector<PartWork>& work, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the current attempt with an error. Only a newer attempt can follow.
  void Fail(const absl::Status& status, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Supersede(int64_t attempt, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks every part as neither updated nor measured.
  void Reset() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerTake(const absl::Status& status, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if workers may have several shares of a step, so that pushes are
  // answered before their parts are updated. Shard refuses settings that would
  // change this.
  bool has_shares() const {
    return options_.shared ||
           options_.total_num_replicas < options_.replicas_to_aggregate;
  }
  bool limits_mean() const { return options_.limit_mean; }
  // Updates have two halves: the mean is kept before it is applied.
  bool keeps_means() const { return limits_mean() || mirror_.mirrored(); }
  // Handles a part whose mean is kept: begins its update, or lets it wait for
  // the norm.
  void OnMeanKept(const PartWork& done, std::vector<PartWork>& work,
                  ShardAnswers& answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the part has all its gradients.
  bool HasAll(size_t part) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return parts_[part].updated || parts_[part].updating ||
           squares_.has(static_cast<int>(part));
  }
  bool prepared() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return failure_.ok() && updated_parts_ == static_cast<int>(parts_.size());
  }
  // Commits `step` if it is the step prepared here: on ps task 0 only if the
  // gate has committed it; on other servers the chief must have reported that
  // ps task 0 has committed it.
  absl::Status Learn(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckCommitLocked(int64_t step, int64_t attempt) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CommitLocked(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const MirrorParts mirror_;
  PartUpdater& updater_;

  mutable Mutex mutex_;
  int replicas_ ABSL_GUARDED_BY(mutex_);  // A, as it is now
  // A from the next attempt on, if work is shared.
  int next_replicas_ ABSL_GUARDED_BY(mutex_);
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t attempt_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<Part> parts_ ABSL_GUARDED_BY(mutex_);
  int updated_parts_ ABSL_GUARDED_BY(mutex_) = 0;
  MeanSquares squares_ ABSL_GUARDED_BY(mutex_);  // where the norm is limited
  const PendingPushes pushes_;
  std::set<int> contributors_ ABSL_GUARDED_BY(mutex_);  // to updated parts
  BlockedWork blocked_ ABSL_GUARDED_BY(mutex_);
  // The failure of an update in the attempt at hand; later calls return it.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  ChiefWait take_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_STRICT_ENGINE_H_
