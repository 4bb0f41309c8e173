#ifndef LOCKSTEP_SERVER_STEP_STRICT_STRICT_SHARD_H_
#define LOCKSTEP_SERVER_STEP_STRICT_STRICT_SHARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/mutex.h"
#include "server/step/engine.h"

namespace lockstep {

// StrictEngine collects, part by part, the gradients of the one set of passes
// that counts for a step, and updates a part as soon as its last gradient is
// in, summed by worker and slot whatever the order of arrival.
//
// On ps task 0 it asks the gate whose gradients count. Elsewhere it need not
// know the set: only chosen passes push, so a part is complete with
// `replicas_to_aggregate` gradients of one attempt. Whose they were it tells
// the chief, so that a step which others have contributed to is not committed.
// A push waits for its parts, which bounds what a server holds to what workers
// have in flight. Whoever repeats a push has given up calls before: of those
// that wait for a worker's part only the newest two are kept. Where N < A it
// does not: a worker needs the answer to begin its next share.
//
// A newer attempt drops everything that an older one collected. Values of the
// committed step stay as they are until Commit(). Attempts are the chief's to
// begin: a push for one that it has not told of waits outside, so that no
// worker can shut out the others.
//
// A push may ask for the values that it led to. They are lent, not copied, and
// a later update of the part waits until nobody reads them any more.
//
//   collecting -> (all parts updated) prepared -> (commit) collecting
//        ^-------------- newer attempt --------------'
//
// Gradients of tables are of some of their rows. A push of none of them counts
// as well: a part is complete when the whole set has said what it has.
//
// Threads: safe to share. Updates run in the thread of the push that completed
//          the part, with no lock held.
// Borrows: the updater.
class StrictEngine final : public Engine {
 public:
  struct Options {
    int replicas_to_aggregate = 1;  // A, > 0; at first
    int total_num_replicas = 1;     // N, > 0
    bool refuse_non_finite = true;
    // Of ps task 0, where alone steps of the job are committed: what it has not
    // committed is not, whoever says so. Borrowed; null on other servers, which
    // learn of a commit from who knows the step after it.
    const Gate* gate = nullptr;
  };

  StrictEngine(const Options& options, PartUpdater& updater);

  void Activate(int64_t global_step) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> AddPush(uint64_t ticket, Push push) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> Take(uint64_t ticket, int64_t step) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelTake(uint64_t ticket) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<ShardAnswers::Prepared> WaitsForCommit() const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckCommit(int64_t step, int64_t attempt) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardAnswers> Commit(int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void LearnCommitted(int64_t step) override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetReplicas(int replicas_to_aggregate) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  ShardAnswers PartReturned(int part) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<int> BlockedParts() const override ABSL_LOCKS_EXCLUDED(mutex_);
  ShardAnswers StartAttempt(int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  Arrivals arrivals() const override ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t step() const override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string WaitsFor() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A push of which some parts are not decided.
  struct Pending {
    uint64_t ticket;
    int first_part = 0;
    bool return_values = false;
    std::vector<PushOutcome> outcomes;
    int undecided = 0;
    absl::Status status;  // of an update that failed
  };
  // Who a gradient is of, in the order of summation.
  using Contributor = std::pair<int, int>;  // worker, slot
  struct Contribution {
    uint64_t incarnation;
    int64_t pass;
    PartGradient gradient;
    std::vector<std::pair<std::shared_ptr<Pending>, int>> waiters;
  };
  struct Part {
    std::map<Contributor, Contribution> collected;
    bool updating = false;  // a thread is in PartUpdater::Update
    bool updated = false;
  };
  // A part whose gradients are all in, for the thread that updates it.
  struct Work {
    int part;
    int64_t step;
    int64_t attempt;
    std::vector<Contributor> contributors;
    std::vector<PartGradient> gradients;          // one of each
    std::map<Contributor, absl::Status> refused;  // theirs are not finite
  };

  absl::Status CheckForm(Push& push) const;
  absl::Status CheckGradient(int part, PartGradient& gradient,
                             bool look_at_it) const;
  // Whether the push is for another step or attempt than the one at hand, and
  // what to answer then.
  absl::StatusOr<std::optional<PushOutcome>> Judge(const Push& push)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a gradient of this worker counts in the attempt at hand, as far as
  // this server knows.
  bool IsChosen(int worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Collect(const std::shared_ptr<Pending>& pending, Push& push,
               std::vector<Work>& work, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Files a push for the outcome of its part `i`.
  void AddWaiter(Contribution& contribution,
                 const std::shared_ptr<Pending>& pending, int i,
                 ShardAnswers& answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeWork(int part, std::vector<Work>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the work is to be done now. It is dropped if its attempt is over,
  // and put by while somebody reads the memory that it writes to.
  bool MayRun(Work& item, std::vector<Work>& work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Updates parts until no work is left; returns what became ready.
  ShardAnswers Run(std::vector<Work> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills `refused`.
  void FindNonFinite(Work& item) const;
  void FinishPart(const Work& done, const absl::Status& status,
                  std::vector<Work>& work, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The part waits for other gradients of these workers.
  void Refuse(const Work& done, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the attempt at hand: nothing but a newer one is left.
  void Fail(const absl::Status& status, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DecideAll(Part& part, PushOutcome outcome, const absl::Status& status,
                 ShardAnswers& answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Decide(Contribution& contribution, PushOutcome outcome,
              const absl::Status& status, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Supersede(int64_t attempt, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerPush(Pending& pending, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerTake(const absl::Status& status, ShardAnswers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether workers have several shares of a step, which no change makes or
  // ends.
  bool has_shares() const {
    return options_.total_num_replicas < options_.replicas_to_aggregate;
  }
  bool prepared() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return failure_.ok() && updated_parts_ == static_cast<int>(parts_.size());
  }
  // Something has come that exists only once `step` is committed on ps task 0:
  // if that is the step prepared here, it is committed here too. On ps task 0
  // the gate has to have committed it, which a caller may hear of first.
  absl::Status Learn(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckCommitLocked(int64_t step, int64_t attempt) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CommitLocked(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  PartUpdater& updater_;

  mutable Mutex mutex_;
  int replicas_ ABSL_GUARDED_BY(mutex_);  // A, as it is now
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t attempt_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<Part> parts_ ABSL_GUARDED_BY(mutex_);
  int updated_parts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<int> contributors_ ABSL_GUARDED_BY(mutex_);  // to updated parts
  // By part: work that waits for readers of the memory it writes to.
  std::map<int, Work> blocked_ ABSL_GUARDED_BY(mutex_);
  // Of an update in the attempt at hand, for whoever asks next.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint64_t> take_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_STEP_STRICT_STRICT_SHARD_H_
