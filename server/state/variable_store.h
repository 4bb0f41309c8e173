#ifndef LOCKSTEP_SERVER_STATE_VARIABLE_STORE_H_
#define LOCKSTEP_SERVER_STATE_VARIABLE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/job/variable_settings.h"
#include "common/plan/run_settings.h"
#include "common/plan/variable_spec.h"
#include "server/state/file/state_file.h"
#include "server/state/file/state_layout.h"
#include "server/state/file/step_record.h"
#include "server/state/state_tensors.h"
#include "server/state/table_store.h"
#include "server/update/optimizer.h"
#include "server/update/slots.h"

namespace lockstep::server {

class InitialValues;

// VariableStore holds the parts of one server, values and slots, in a state
// file, and moves them from one committed step to the next.
//
// The caller must open it in this order: Create(), Initialize(), WriteStretch()
// to restore a checkpoint, Activate(). A step in double-buffered mode: fill the
// next buffer of every part, which Update() returns, then MarkPrepared() and
// Commit(). A step in place: fill the only buffer, then Commit().
//
// Tables are written row by row, by tables(), unless the optimizer or a moving
// average changes all their rows.
//
// A process killed at any instant leaves the last committed step whole, and
// Open() finds it; in place, some parts may be updated further. After
// MarkPrepared() has returned, the prepared step is whole as well.
//
// Threads: the caller must synchronize. The tensors of a part may be used by
//          one thread at a time. A call marked "record" must not run together
//          with any other call.
// Units:   spans count bytes.
// Errors:  a call that fails has changed nothing.
class VariableStore {
 public:
  struct Options {
    std::string directory;  // on a memory file system
    std::string job_id;
    int task_index = 0;
    uint64_t incarnation = 0;                 // of this process
    std::vector<VariableSpec> variables;      // of the whole model
    std::vector<PartSpec> parts;              // of this server
    std::vector<OptimizerConfig> optimizers;  // of the job
    std::vector<VariableSettings> settings;   // by variable
    bool in_place = false;                    // one buffer: compatible mode
    // Set by Create() and Initialize(); may be null. Shared with the store.
    std::shared_ptr<FillProgress> progress = nullptr;
  };

  // Checks the options as Create() does, except those of the file. Makes no
  // file.
  //
  //   kInvalidArgument  as Create()
  static absl::Status CheckOptions(const Options& options);

  // Makes the state file; nothing is committed yet.
  //
  //   kInvalidArgument  a part is no slice of its variable
  //   and the errors of StateLayout::Make() and StateFile::Create()
  static absl::StatusOr<std::unique_ptr<VariableStore>> Create(
      const Options& options);

  // Maps the state that an earlier process of this task left.
  //
  //   the errors of Create(), with those of StateFile::Open()
  static absl::StatusOr<std::unique_ptr<VariableStore>> Open(
      const Options& options);

  // Deletes the file that Open() would map.
  static absl::Status Discard(const Options& options);

  // Expires when the memory of the store is free and its file is unlocked.
  std::weak_ptr<const void> presence() const { return presence_; }

  VariableStore(const VariableStore&) = delete;
  VariableStore& operator=(const VariableStore&) = delete;

  TableStore& tables() { return tables_; }
  const TableStore& tables() const { return tables_; }

  size_t num_parts() const { return tensors_.num_parts(); }
  const PartSpec& part(size_t part) const { return tensors_.part(part); }
  size_t num_tensors(size_t part) const { return tensors_.num_tensors(part); }
  bool in_place() const { return tensors_.in_place(); }
  // True if the next step of a part is written by tables().
  bool is_logged(size_t part) const { return tensors_.is_logged(part); }
  const StepRecord& record() const { return tensors_.record(); }
  int64_t committed_step() const { return tensors_.committed_step(); }
  bool is_active() const { return tensors_.is_active(); }

  // The powers that the update of the committed step uses.
  const AllAdamPowers& committed_powers() const;

  // As StateTensors: tensor 0 of a part is its value, then come its slots, then
  // its average.
  absl::Span<const std::byte> Committed(size_t part, size_t tensor) const {
    return tensors_.Committed(part, tensor);
  }
  absl::Span<std::byte> Next(size_t part, size_t tensor) {
    return tensors_.Next(part, tensor);
  }

  // The file, for processes of this host that read values in place, and the
  // offset of a tensor in it.
  SharedFile Share() const { return tensors_.file().Share(); }
  uint64_t OffsetOf(absl::Span<const std::byte> tensor) const {
    return tensor.data() - tensors_.file().bytes().data();
  }

  // Updates of a part up to the committed step.
  int64_t Updates(size_t part) const { return tensors_.Updates(part); }
  // Must be called when a part was updated for the next step.
  void CountUpdate(size_t part) {
    tensors_.SetNextUpdates(part, tensors_.Updates(part) + 1);
  }
  // Overwrites the number, before Activate().
  //
  //   kFailedPrecondition  active already
  absl::Status SetUpdates(size_t part, int64_t updates);

  // Returns the input of an update of the part. The caller must fill in the
  // gradients, the divisor and the learning rate times
  // record().learning_rate_scale.
  ApplyInput Update(size_t part);

  // The tensors of a move of a part's average to the committed step. With two
  // buffers, `from` keeps the average of the previous step, so the move may be
  // repeated.
  struct AverageMove {
    absl::Span<const std::byte> value;
    absl::Span<const std::byte> from;  // in place: `to` itself
    absl::Span<std::byte> to;
  };
  // The part must have an average, and the committed step must not be the
  // opened one.
  AverageMove MoveAverage(size_t part);

  // Makes the next step's tensors of a part equal to the committed ones. Must
  // be called for a part without a gradient.
  void CarryOver(size_t part);

  // Overwrites a range of a value or slot, from byte `first` on, before
  // Activate().
  //
  //   kInvalidArgument     unknown part or tensor, or beyond its end
  //   kFailedPrecondition  active already
  absl::Status WriteStretch(size_t part, size_t tensor, size_t first,
                            absl::Span<const std::byte> bytes);

  // Writes the initial values of all parts and clears their slots, on all
  // processors.
  //
  //   kFailedPrecondition  active already
  //   kCancelled           `progress` was stopped
  absl::Status Initialize(uint64_t seed);

  // record: commits the initialised or written values as `step`, with the
  // powers for its update. Repeating it with the committed step changes
  // nothing.
  //
  //   kInvalidArgument     step below 0
  //   kFailedPrecondition  active already, at another step
  absl::Status Activate(int64_t step, const AllAdamPowers& powers);

  // record: records that the next buffers are complete for `step`, as the
  // result of `attempt`.
  //
  //   kInvalidArgument     attempt below 0
  //   kFailedPrecondition  in place, not active, or `step` is not the one after
  //                        the committed one
  absl::Status MarkPrepared(int64_t step, int64_t attempt);

  // record: withdraws MarkPrepared(). Must be called before the next buffers
  // are written again.
  void DropPrepared();

  // record: makes `step` the committed one, for all parts at the same instant.
  // Repeating it with the committed step changes nothing. Tables must not be
  // read or written meanwhile.
  //
  //   kFailedPrecondition  not prepared (in place: not the next step)
  absl::Status Commit(int64_t step);
  // Checks that Commit() would work.
  absl::Status CheckCommit(int64_t step) const;

  // record: stores the epoch of the newest chief.
  //
  //   kFailedPrecondition  `epoch` is older than the stored one
  absl::Status SetEpoch(uint64_t epoch);

  // record: stores that the chief of the current epoch opens the state, with
  // these run-time changes, which must be valid as FromProto() checks.
  void OpenWith(const RunSettings& settings);
  RunSettings settings() const;

  // The memory of the WorkerFences that outlive this process.
  absl::Span<std::byte> fences() const {
    return tensors_.file().bytes().subspan(StateLayout::kFencesOffset,
                                           StateLayout::kFencesSize);
  }

  // Deletes the state file. Must be called when the job is done.
  absl::Status Remove() { return tensors_.file().Remove(); }

 private:
  VariableStore(const Options& options, StateLayout layout,
                std::unique_ptr<StateFile> file);

  // Initializes the parts [first, end); or one part, with the initial values of
  // its variable.
  absl::Status InitializeParts(size_t first, size_t end, uint64_t seed);
  absl::Status InitializePart(size_t i, const InitialValues& values);
  // Writes the initial values of a part, and advances progress_.
  absl::Status FillPart(size_t i, const InitialValues& values,
                        absl::Span<std::byte> out);
  absl::Status Advance(uint64_t bytes) {
    return progress_ == nullptr ? absl::OkStatus() : progress_->Advance(bytes);
  }

  AllAdamPowers NextPowers() const;

  // First: it ends when all else has ended.
  const std::shared_ptr<const void> presence_ = std::make_shared<char>();
  const std::shared_ptr<FillProgress> progress_;
  StateTensors tensors_;
  TableStore tables_;  // borrows tensors_
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_VARIABLE_STORE_H_
