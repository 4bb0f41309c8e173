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

namespace lockstep {

// Shard is one server's share of a job: the state of its parts, the engine
// that moves them from step to step, on ps task 0 the gate, and the copy that
// a checkpoint is made from.
//
//   created, or reopened -> Activate() -> open for workers -> Remove()
//                              ^----------------'
//
// A reopened one has the state that a killed process left, but no gradient of
// the step at hand: the chief says which step to go on from. It says so to a
// shard that is open, too, when it or another server has been away.
//
// Threads: safe to share.
class Shard {
 public:
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

  // Checks that a worker of the job speaks, of a share that is its own.
  //
  //   kInvalidArgument  another task, or a slot that is not the worker's
  absl::Status CheckWorker(const TaskId& task, int slot) const;

  // What a chief has to know to open the shard.
  struct Report {
    bool active = false;          // open, with all that it collected
    int64_t committed_step = -1;  // -1: never open, nothing to go on from
    int64_t prepared_step = -1;   // -1, or the step that can be committed
    int64_t attempt = 0;          // of the step at hand, if open; strict mode
  };
  Report GetReport() const ABSL_LOCKS_EXCLUDED(mutex_);

  // How the job runs, as the chief has said last, or as the state has it.
  RunSettings settings() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether every worker's gradient counts in every step, strict mode.
  bool everybody_counts() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What Activate() made ready.
  struct Activated {
    ShardAnswers answers;
    std::vector<Gate::Answer> tokens;
  };
  // Opens the shard, with state or without; on ps task 0 initial tokens are
  // out. A shard that has prepared `global_step` commits it. `attempt`: the
  // step at hand begins anew with that one; 0: as it stands. `scalars` count
  // where nothing was committed before. `settings` hold from here on. Repeating
  // it changes nothing.
  //
  //   kInvalidArgument     wrong scalars, a negative step or attempt, or
  //                        settings that turn workers with one share of a step
  //                        into such with several, or back
  //   kFailedPrecondition  neither committed nor prepared `global_step`
  absl::StatusOr<Activated> Activate(int64_t global_step,
                                     const std::vector<float>& scalars,
                                     int64_t attempt = 0,
                                     const RunSettings& settings = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool active() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The values of consecutive parts, one after the other.
  struct Values {
    int64_t step = 0;
    std::vector<LentBytes> parts;
  };

  // Up to which step the shard may be committed without the chief. One caller
  // at a time.
  void Grant(int64_t commit_until) {
    granted_until_ = commit_until;
    if (commit_until > most_granted_) most_granted_ = commit_until;
  }
  bool MayCommit(int64_t step) const { return step <= granted_until_; }
  // A later grant may be of fewer steps than were committed meanwhile.
  bool WasGranted(int64_t step) const { return step <= most_granted_; }

  // Who reads. That a worker of the job asks for the step after this server's
  // tells, on other servers than ps task 0, that the job has committed it.
  enum class Reader { kWorker, kOther };

  // Lends the values of parts, strict mode: of one step, the newest committed
  // one, which is at least `step`.
  //
  //   kInvalidArgument     unknown parts
  //   kFailedPrecondition  not open, or `step` is not committed yet
  absl::StatusOr<Values> Pull(int first_part, int num_parts, int64_t step,
                              Reader reader = Reader::kWorker);

  // Bytes of tensors of consecutive parts.
  //
  //   kInvalidArgument  unknown parts
  absl::StatusOr<size_t> SizeOf(int first_part, int num_parts) const;

  using Stretch = Snapshot::Stretch;
  // `num_elements` 0: all of the parts; else of one part.
  //
  //   kInvalidArgument  unknown parts, or elements that are not all in the part
  absl::StatusOr<Stretch> FindStretch(int first_part, int num_parts,
                                      int64_t first_element,
                                      int64_t num_elements) const;

  // Copies rows of a part that is a table, as Pull() lends values to a worker;
  // of one that grows, by keys. Errors as there, and those of
  // ShardState::ReadRows() and ReadKeys().
  absl::StatusOr<int64_t> PullRows(int part, absl::Span<const int64_t> rows,
                                   int64_t step, absl::Span<std::byte> out);

  const std::vector<PartSpec>& parts() const { return state_->parts(); }
  std::string PartName(int part) const { return state_->PartName(part); }
  // Of an existing part.
  size_t PartSize(int part) const { return state_->part_size(part); }
  // As PartUpdater::GradientSize(), of an existing part.
  absl::StatusOr<size_t> GradientSize(int part, GradientType type) const {
    return state_->updates().GradientSize(part, type);
  }

  // Copies the committed state aside, and returns its step. Must be called at
  // a step boundary. In strict mode an existing copy of this step is returned.
  //
  //   kFailedPrecondition  not open
  //   and the errors of Snapshot::Take()
  absl::StatusOr<int64_t> BeginSnapshot() ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the copy that is being made, or was made last.
  std::shared_ptr<const FillProgress> snapshot_progress() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  //   kFailedPrecondition  there is no copy
  absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndSnapshot() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Shard(const ShardState::Options& options, std::unique_ptr<ShardState> state);

  // Whether values of `step` can be read.
  absl::Status CheckReadable(int64_t step, Reader reader)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the state and the engine stand at `global_step`.
  absl::Status OpenAt(int64_t global_step, const std::vector<float>& scalars);
  absl::Status MoveTo(int64_t global_step);
  bool CanCommitNext() const;
  absl::Status CheckSettings(const RunSettings& settings) const;
  std::vector<Gate::Answer> Apply(const RunSettings& settings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A and N of the settings, or of the job where they are silent.
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

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SHARD_SHARD_H_
