#ifndef LOCKSTEP_SERVER_SHARD_PARTS_SHARD_STATE_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_SHARD_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/event_queue.h"
#include "common/job/job_config.h"
#include "common/job/variable_settings.h"
#include "common/plan/run_settings.h"
#include "server/shard/parts/locked_parts.h"
#include "server/shard/parts/part_updates.h"
#include "server/shard/parts/part_values.h"
#include "server/state/variable_store.h"

namespace lockstep::server {

// ShardState holds the variables of one server. It opens, restores and deletes
// them; values() reads them, and updates() moves them from step to step.
//
// Threads: safe to share.
// Units:   sizes count bytes; tensor 0 is a value, tensor k its k-th slot.
class ShardState {
 public:
  struct Options {
    JobConfig job;
    std::string job_id;
    int task_index = 0;
    uint64_t incarnation = 0;
    std::string state_dir;
    std::vector<VariableSpec> variables;  // of the whole model
    std::vector<PartSpec> parts;          // of this server; may be none
    bool shared_memory = true;            // let workers read values in place
    // As the argument of PartValues.
    std::shared_ptr<EventQueue<int>> returned_parts;
    // Receives an entry at each commit of a mirrored job; may be null.
    std::shared_ptr<EventQueue<int>> attempts = nullptr;
    // Set by Create() and Open(); may be null.
    std::shared_ptr<FillProgress> progress = nullptr;
  };

  ShardState(const ShardState&) = delete;
  ShardState& operator=(const ShardState&) = delete;

  // Checks the options as Create() does. Makes no file.
  //
  //   kInvalidArgument  as Create()
  static absl::Status CheckOptions(const Options& options);

  // Creates the state file and fills it with initial values. Replaces a file
  // that an earlier process left.
  //
  // Errors: those of VariableStore::Create(), of SettingsOf() and of
  // CheckProjection().
  static absl::StatusOr<std::unique_ptr<ShardState>> Create(
      const Options& options);

  // Maps the state that an earlier process of this task left. State that was
  // never active gets its initial values again.
  //
  //   kNotFound  there is none, or the server has no part
  //   and the other errors of VariableStore::Open()
  static absl::StatusOr<std::unique_ptr<ShardState>> Open(
      const Options& options);

  PartValues& values() { return values_; }
  const PartValues& values() const { return values_; }
  PartUpdates& updates() { return updates_; }
  const PartUpdates& updates() const { return updates_; }

  int num_parts() const { return parts_.num_parts(); }
  const std::vector<PartSpec>& parts() const { return parts_.parts; }
  // As LockedParts; the part must exist.
  size_t part_size(int part) const { return parts_.size(part); }
  int num_tensors(int part) const { return parts_.num_tensors(part); }
  std::string PartName(int part) const { return parts_.Name(part); }
  // By variable of the model: the names of the tensors beside the value, slots
  // first, then an average.
  std::vector<std::vector<std::string>> SlotNames() const;
  // The names of the optimizers' scalars: the powers of TensorFlow's Adams,
  // where those of the second one are "beta1_power_1" and so on; then the
  // number of updates of each variable whose optimizer counts them,
  // "<variable>/step".
  std::vector<std::string> ScalarNames() const;

  // Opens the state at `step`. `scalars` are those of ScalarNames(); empty
  // stands for those of step 0.
  //
  //   kInvalidArgument     another number of scalars, or a negative step
  //   kFailedPrecondition  open at another step
  absl::Status Activate(int64_t step, const std::vector<float>& scalars)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Continues from the state that Open() found, at `step`, which must be
  // committed or prepared there. Drops another prepared step.
  //
  //   kFailedPrecondition  `step` is neither
  absl::Status Resume(int64_t step) ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Checks that Activate(), or Resume() if a step was ever committed here,
  // would work. Returns the error that they would return.
  absl::Status CheckOpening(int64_t step,
                            const std::vector<float>& scalars) const
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // The newest step record; that of a new file if the server has no part.
  StepRecord record() const ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Stores in the step record that the chief of the current epoch opens the
  // state, with these run-time settings. No effect if the server has no part.
  void OpenWith(const RunSettings& settings)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  RunSettings settings() const ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Overwrites a range of a tensor of a part, from byte `first` on, before
  // Activate().
  //
  //   kInvalidArgument     unknown part or tensor, or beyond its end, or a part
  //                        that grows
  //   kFailedPrecondition  open already
  absl::Status Write(int part, int tensor, size_t first,
                     absl::Span<const std::byte> bytes)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // As Write(), for rows of a part that grows. From here on checkpoints hold
  // them.
  //
  //   kResourceExhausted  besides the errors of Write(): no room for them
  absl::Status WriteRows(int part, int tensor, absl::Span<const int64_t> keys,
                         absl::Span<const std::byte> bytes)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // True once Write() or WriteRows() was called: state that was never opened
  // then may be partly that of a checkpoint.
  bool written() const { return written_; }

  // Returns the optimizers' scalars for the next update. The number of updates
  // of a variable is 0 if it has no part here, and stays at 2^24, beyond which
  // it has no effect.
  std::vector<float> Scalars() const ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // As VariableStore::fences(); empty where the server has no part.
  absl::Span<std::byte> fences() const {
    return parts_.store == nullptr ? absl::Span<std::byte>()
                                   : parts_.store->fences();
  }

  // As VariableStore::presence(): lent values keep the memory in use longer
  // than this object lives. Has expired where the server has no part.
  std::weak_ptr<const void> presence() const {
    return parts_.store == nullptr ? std::weak_ptr<const void>()
                                   : parts_.store->presence();
  }

  // Stores the epoch of the newest chief. No effect if the server has no part.
  //
  //   kFailedPrecondition  `epoch` is older than the stored one
  absl::Status SetEpoch(uint64_t epoch)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Deletes the state file: the job is done. Errors: those of
  // StateFile::Remove().
  absl::Status Remove() ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

 private:
  ShardState(const Options& options, std::vector<VariableSettings> settings,
             std::shared_ptr<VariableStore> store);

  // Variables whose number of updates is one of the scalars, ascending.
  std::vector<int> CountedVariables() const;
  // The optimizers' numbers at the opening of a state.
  struct OptimizerNumbers {
    AllAdamPowers powers = {};
    std::vector<int64_t> updates;  // by variable
  };
  // Returns the numbers in `scalars`; those of step 0 if it is empty.
  absl::StatusOr<OptimizerNumbers> FromScalars(
      const std::vector<float>& scalars) const;

  LockedParts parts_;
  PartValues values_;
  PartUpdates updates_;
  std::atomic<bool> written_ = false;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_SHARD_STATE_H_
