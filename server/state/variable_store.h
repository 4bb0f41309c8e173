#ifndef LOCKSTEP_SERVER_STATE_VARIABLE_STORE_H_
#define LOCKSTEP_SERVER_STATE_VARIABLE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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
#include "server/update/adam_powers.h"
#include "server/update/optimizer.h"
#include "server/update/slots.h"

namespace lockstep {

class InitialValues;

// VariableStore holds the parts of one server, values and slots, in a state
// file, and moves them from one committed step to the next.
//
// It opens in this order: Create(), Initialize(), WriteTensor() where a
// checkpoint is restored, Activate(). A step in double-buffered mode: fill
// every part's next buffer (Update() says where it is), MarkPrepared(),
// Commit(). In place: fill the one buffer, Commit().
//
// Tables are written row by row, by tables(), unless the optimizer or a moving
// average changes all their rows.
//
// A process killed at any instant leaves the last committed step whole (in
// place: with some parts updated further), and Open() finds it. Once
// MarkPrepared() has returned, the prepared step is whole as well.
//
// Threads: not safe to share as it is. Of each part one caller at a time may
//          use the tensors; the caller locks parts. The calls marked "record"
//          exclude each other and every other call.
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
    // Of Create() and Initialize(); null: nobody asks. Shared with the store.
    std::shared_ptr<FillProgress> progress = nullptr;
  };

  // Whether Create() would find nothing wrong with them. Makes no file.
  //
  //   kInvalidArgument  as there, but for what StateFile refuses
  static absl::Status CheckOptions(const Options& options);

  // Makes the state file; nothing is committed yet.
  //
  //   kInvalidArgument  a part that is no slice of its variable, or what
  //                     StateLayout and StateFile refuse
  //   and what StateFile::Create() says
  static absl::StatusOr<std::unique_ptr<VariableStore>> Create(
      const Options& options);

  // Maps the state that an earlier process of this task left.
  //
  //   as Create(), with what StateFile::Open() says
  static absl::StatusOr<std::unique_ptr<VariableStore>> Open(
      const Options& options);

  // Deletes what Open() would look for, when the caller has decided that it is
  // of no use.
  static absl::Status Discard(const Options& options);

  VariableStore(const VariableStore&) = delete;
  VariableStore& operator=(const VariableStore&) = delete;

  TableStore& tables() { return tables_; }
  const TableStore& tables() const { return tables_; }

  size_t num_parts() const { return tensors_.num_parts(); }
  const PartSpec& part(size_t part) const { return tensors_.part(part); }
  size_t num_tensors(size_t part) const { return tensors_.num_tensors(part); }
  bool in_place() const { return tensors_.in_place(); }
  // Whether the next step of a part is written by tables().
  bool is_logged(size_t part) const { return tensors_.is_logged(part); }
  const StepRecord& record() const { return tensors_.record(); }
  int64_t committed_step() const { return tensors_.committed_step(); }
  bool is_active() const { return tensors_.is_active(); }

  // Of the committed step, the ones that its update uses.
  const AllAdamPowers& committed_powers() const;

  // As StateTensors: tensor 0 of a part is its value, then come its slots, then
  // its average.
  absl::Span<const std::byte> Committed(size_t part, size_t tensor) const {
    return tensors_.Committed(part, tensor);
  }
  absl::Span<std::byte> Next(size_t part, size_t tensor) {
    return tensors_.Next(part, tensor);
  }

  // For processes of this host that read values in place, and where one of
  // the two above is in that file.
  SharedFile Share() const { return tensors_.file().Share(); }
  uint64_t OffsetOf(absl::Span<const std::byte> tensor) const {
    return tensor.data() - tensors_.file().bytes().data();
  }

  // An update of the part with everything filled in but the learning rate
  // (record().learning_rate_scale included), gradients and divisor.
  ApplyInput Update(size_t part);

  // What moves the average of a part to the committed step. Where there are two
  // buffers the average of the step before is in the other one and stays, so
  // that this may be repeated; nothing else of the other buffer counts.
  struct AverageMove {
    absl::Span<const std::byte> value;
    absl::Span<const std::byte> from;  // in place: `to` itself
    absl::Span<std::byte> to;
  };
  // The part has an average, and the committed step is not the opened one.
  AverageMove MoveAverage(size_t part);

  // Makes the next step's tensors of a part equal to the committed ones: for a
  // part that got no gradient.
  void CarryOver(size_t part);

  // Tensor index of a full name: "w" is the value of variable w, "w/Momentum"
  // a slot of it.
  //
  //   kNotFound  the part has no such tensor
  absl::StatusOr<size_t> FindTensor(size_t part, absl::string_view name) const;

  // Copies a committed value or slot out.
  //
  //   kInvalidArgument  unknown part or tensor, or `out` of another length
  absl::Status ReadTensor(size_t part, size_t tensor,
                          absl::Span<std::byte> out) const;

  // Overwrites a value or slot, before Activate().
  //
  //   kInvalidArgument     unknown part or tensor, or `bytes` of another length
  //   kFailedPrecondition  active already
  absl::Status WriteTensor(size_t part, size_t tensor,
                           absl::Span<const std::byte> bytes);
  // The same of a stretch of it, from byte `first` on.
  absl::Status WriteStretch(size_t part, size_t tensor, size_t first,
                            absl::Span<const std::byte> bytes);

  // Writes the initial values of all parts and clears their slots, on all
  // processors.
  //
  //   kFailedPrecondition  active already
  //   kCancelled           `progress` says so
  absl::Status Initialize(uint64_t seed);

  // record: commits what was initialised or written as `step`, with the powers
  // for its update. Again with the step that is committed: no change.
  //
  //   kInvalidArgument     step below 0
  //   kFailedPrecondition  active already, at another step
  absl::Status Activate(int64_t step, const AllAdamPowers& powers);

  // record: says that the next buffers are complete for `step`, as the outcome
  // of `attempt`.
  //
  //   kInvalidArgument     attempt below 0
  //   kFailedPrecondition  in place, not active, or `step` is not the one
  //                        after the committed one
  absl::Status MarkPrepared(int64_t step, int64_t attempt);

  // record: takes MarkPrepared() back. To be called before anything is written
  // to the next buffers again.
  void DropPrepared();

  // record: makes `step` the committed one, at once for all parts. Again with
  // the step that is committed: no change. Nobody may read or write tables
  // meanwhile.
  //
  //   kFailedPrecondition  not prepared (in place: not the next step)
  absl::Status Commit(int64_t step);

  // record: remembers the newest chief.
  //
  //   kFailedPrecondition  `epoch` is older than the one remembered
  absl::Status SetEpoch(uint64_t epoch);

  // record: run-time changes, as FromProto() admits them.
  void SetSettings(const RunSettings& settings);
  RunSettings settings() const;

  // Where WorkerFences go that shall outlive this process.
  absl::Span<std::byte> fences() const {
    return tensors_.file().bytes().subspan(StateLayout::kFencesOffset,
                                           StateLayout::kFencesSize);
  }

  // Deletes the state file: the job is done.
  absl::Status Remove() { return tensors_.file().Remove(); }

 private:
  VariableStore(const Options& options, StateLayout layout,
                std::unique_ptr<StateFile> file);

  // Of parts from `first` on, before `end`; or of one, whose variable `values`
  // is of.
  absl::Status InitializeParts(size_t first, size_t end, uint64_t seed);
  absl::Status InitializePart(size_t i, const InitialValues& values);
  // Writes the initial values of a part, and says so to `progress_`.
  absl::Status FillPart(size_t i, const InitialValues& values,
                        absl::Span<std::byte> out);
  absl::Status Advance(uint64_t bytes) {
    return progress_ == nullptr ? absl::OkStatus() : progress_->Advance(bytes);
  }

  AllAdamPowers NextPowers() const;

  const std::shared_ptr<FillProgress> progress_;
  StateTensors tensors_;
  TableStore tables_;  // borrows tensors_
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_STATE_VARIABLE_STORE_H_
