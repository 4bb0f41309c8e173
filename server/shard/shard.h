#ifndef LOCKSTEP_SERVER_SHARD_SHARD_H_
#define LOCKSTEP_SERVER_SHARD_SHARD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "common/plan/run_settings.h"
#include "server/shard/parts/shard_state.h"
#include "server/shard/shared_gradients.h"
#include "server/shard/snapshot.h"
#include "server/step/engine.h"
#include "server/step/gate.h"

namespace lockstep::server {

// Shard is one server's share of a job: the state of its parts, the engine that
// moves them from step to step, on ps task 0 the gate, and the copy that a
// checkpoint is made from.
//
//   created, or reopened -> Activate() -> open for workers -> Remove()
//                              ^----------------'
//
// A reopened shard has the state that a killed process left, but no gradients
// of the current step; the chief decides which step it continues from.
// Activate() is also called on an open shard, after the chief or another server
// was away.
//
// Threads: safe to share.
class Shard {
 public:
  // Errors: those of ShardState::Create().
  static absl::StatusOr<std::unique_ptr<Shard>> Create(
      const ShardState::Options& options);
  // Errors: those of ShardState::Open().
  static absl::StatusOr<std::unique_ptr<Shard>> Open(
      const ShardState::Options& options);

  const JobConfig& job() const { return job_; }
  ShardState& state() { return *state_; }
  Engine& engine() { return *engine_; }
  SharedGradients& shared_gradients() { return shared_gradients_; }
  const SharedGradients& shared_gradients() const { return shared_gradients_; }
  // Null unless this is ps task 0.
  Gate* gate() { return gate_.get(); }

  // Checks that `task` is a worker of the job, and `slot` one of its shares.
  //
  //   kInvalidArgument     another task, or a slot that is not the worker's
  //   kFailedPrecondition  a worker that an elastic job has not admitted, or no
  //                        longer admits; it must register again
  absl::Status CheckWorker(const TaskId& task, int slot) const;

  // The facts from which a chief decides how to open the shard.
  struct Report {
    bool active = false;          // open, with the gradients it has collected
    int64_t committed_step = -1;  // -1: never open, so there is no state
    int64_t prepared_step = -1;   // -1, or the step that can be committed
    int64_t attempt = 0;          // of the step at hand, if open; strict mode
    uint64_t opened_epoch = 0;    // in which it was opened last; 0: never
  };
  Report GetReport() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The run-time settings of the last Activate(), or those of the state.
  RunSettings settings() const ABSL_LOCKS_EXCLUDED(mutex_);
  // True in strict mode if every worker's gradient counts (N = A).
  bool all_workers_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The answers that Activate() made ready. The caller must send them.
  struct Activated {
    ShardAnswers answers;
    std::vector<Gate::Answer> tokens;
  };
  // Opens the shard at `global_step`, and on ps task 0 issues the initial
  // tokens. A shard that has prepared `global_step` commits it. Restarts the
  // current step as `attempt`, unless that is 0. `scalars` are used only if no
  // step was ever committed here. Applies `settings`. Repeating the call
  // changes nothing.
  //
  //   kInvalidArgument     wrong scalars, a negative step or attempt, or
  //                        settings that give workers several shares of a step
  //                        instead of one, or one instead of several
  //   kFailedPrecondition  neither committed nor prepared `global_step`
  absl::StatusOr<Activated> Activate(int64_t global_step,
                                     const std::vector<float>& scalars,
                                     int64_t attempt = 0,
                                     const RunSettings& settings = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks that Activate() would work; changes nothing.
  absl::Status CheckActivate(int64_t global_step,
                             const std::vector<float>& scalars, int64_t attempt,
                             const RunSettings& settings) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool active() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A worker's wait for a token after `pass`, whose gradient it has pushed in
  // `attempt`; 0: it pushed none. `computing`: it still computes the pass, and
  // asks only whether that is over. Must be called on ps task 0. Errors: those
  // of Gate::Wait() and Gate::Watch().
  struct TokenWait {
    uint64_t ticket = 0;
    Pass pass = {};
    int64_t attempt = 0;
    bool computing = false;
  };
  absl::StatusOr<std::vector<Gate::Answer>> AwaitToken(const TokenWait& wait,
                                                       absl::Time now);

  // The values of consecutive parts, one after the other.
  struct Values {
    int64_t step = 0;
    std::vector<LentBytes> parts;
  };

  // Allows commits of steps up to `commit_until` without another order of the
  // chief, and withdraws the previous grant. Must not be called by two threads
  // at the same time.
  void Grant(int64_t commit_until) {
    granted_until_ = commit_until;
    if (commit_until > most_granted_) most_granted_ = commit_until;
  }
  bool MayCommit(int64_t step) const { return step <= granted_until_; }
  // True if any grant so far has included the step.
  bool WasGranted(int64_t step) const { return step <= most_granted_; }

  // Lends the values of parts at the newest committed step, which is at least
  // `step`. In strict mode all parts are of the same step.
  //
  //   kInvalidArgument     unknown parts
  //   kFailedPrecondition  not open, or `step` is not committed yet
  //   kUnavailable         as Engine::CheckReached()
  absl::StatusOr<Values> Pull(int first_part, int num_parts, int64_t step);

  // Returns the bytes of one tensor of all of these parts together.
  //
  //   kInvalidArgument  unknown parts
  absl::StatusOr<size_t> SizeOf(int first_part, int num_parts) const;

  using ByteRange = Snapshot::ByteRange;
  // Returns whole parts if `first_element` and `num_elements` are 0, else those
  // elements of one part.
  //
  //   kInvalidArgument  unknown parts, several parts with elements, or elements
  //                     beyond the part
  absl::StatusOr<ByteRange> FindRange(int first_part, int num_parts,
                                      int64_t first_element,
                                      int64_t num_elements) const;

  // Copies rows of a table's part for a worker; if the part grows, `rows` are
  // keys. Returns the step of the rows.
  //
  //   the errors of Pull(), PartValues::ReadRows() and ReadKeys()
  absl::StatusOr<int64_t> PullRows(int part, absl::Span<const int64_t> rows,
                                   int64_t step, absl::Span<std::byte> out);

  const std::vector<PartSpec>& parts() const { return state_->parts(); }
  std::string PartName(int part) const { return state_->PartName(part); }
  // Bytes of an existing part.
  size_t PartSize(int part) const { return state_->part_size(part); }
  // As PartUpdater::GradientSize(), of an existing part.
  absl::StatusOr<size_t> GradientSize(int part, GradientType type) const {
    return state_->updates().GradientSize(part, type);
  }

  // Copies the committed state aside, and returns its step. Must be called at
  // a step boundary. An existing copy of this step stays as it is; one of
  // another step is freed first, even if the call fails.
  //
  //   kFailedPrecondition  not open
  //   kDataLoss            as Engine::CheckWhole()
  //   and the errors of Snapshot::Take()
  absl::StatusOr<int64_t> BeginSnapshot() ABSL_LOCKS_EXCLUDED(mutex_);
  // The progress of the running or the last copy.
  std::shared_ptr<const FillProgress> snapshot_progress() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the copy of the last BeginSnapshot().
  //
  //   kFailedPrecondition  there is none
  absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndSnapshot() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Shard(const ShardState::Options& options, std::unique_ptr<ShardState> state);

  // Checks that values of `step` can be read. Errors as Pull().
  absl::Status CheckReadable(int64_t step) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the state and the engine to `global_step`.
  absl::Status OpenAt(int64_t global_step, const std::vector<float>& scalars);
  absl::Status MoveTo(int64_t global_step);
  // As CheckActivate(), and as MoveTo() on an active shard.
  absl::Status CheckOpening(int64_t global_step,
                            const std::vector<float>& scalars, int64_t attempt,
                            const RunSettings& settings) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckMove(int64_t global_step) const;
  bool CanCommitNext() const;
  absl::Status CheckSettings(const RunSettings& settings) const;
  std::vector<Gate::Answer> Apply(const RunSettings& settings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A and N of the settings, or of the job if the settings have none.
  int ReplicasOf(const RunSettings& settings) const;
  int WorkersOf(const RunSettings& settings) const;

  const JobConfig job_;
  const std::unique_ptr<ShardState> state_;
  const std::unique_ptr<Gate> gate_;
  const std::unique_ptr<Engine> engine_;  // borrows gate_
  SharedGradients shared_gradients_;

  std::atomic<int64_t> granted_until_ = 0;
  std::atomic<int64_t> most_granted_ = 0;

  mutable Mutex mutex_;
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  RunSettings settings_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FillProgress> snapshot_progress_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<FillProgress>();
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_SHARD_H_
