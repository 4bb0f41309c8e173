#ifndef LOCKSTEP_SERVER_SHARD_SHARD_STATE_H_
#define LOCKSTEP_SERVER_SHARD_SHARD_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/event_queue.h"
#include "common/base/mutex.h"
#include "common/job/job_config.h"
#include "common/job/variable_settings.h"
#include "common/memory/shared_memory.h"
#include "common/memory/write_counters.h"
#include "common/plan/run_settings.h"
#include "server/shard/loan_book.h"
#include "server/state/variable_store.h"
#include "server/step/shard_engine.h"
#include "server/update/optimizer.h"
#include "server/update/sparse_optimizer.h"

namespace lockstep {

// ShardState is the variables of one server with the arithmetic that moves
// them from step to step. It puts locks around VariableStore: one per part,
// held while its tensors are read or written, and one for the step record.
//
// Values of committed and of prepared steps are lent in place, where there are
// two buffers of each. Processes of the same host may copy them out by
// themselves; counters of writes tell them whether they were too slow.
//
// Threads: safe to share. Locks are taken in this order: part, then record.
// Units:   sizes count bytes; tensor 0 is a value, tensor k its k-th slot.
class ShardState final : public PartUpdater {
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
    // Gets each part for which ClaimNext() has returned false, once its
    // readers are done. Null: nobody waits.
    std::shared_ptr<EventQueue<int>> returned_parts;
    // Of Create() and Open(), where somebody asks.
    std::shared_ptr<FillProgress> progress = nullptr;
  };

  ~ShardState() override { loans_->Close(); }

  // Whether Create() would find nothing wrong with them. Makes no file.
  //
  //   kInvalidArgument  as there
  static absl::Status CheckOptions(const Options& options);

  // Creates the state file and fills it with initial values. A file that an
  // earlier process left is replaced.
  //
  // Errors: those of VariableStore::Create(), of SettingsOf() and of
  // CheckProjection().
  static absl::StatusOr<std::unique_ptr<ShardState>> Create(
      const Options& options);

  // Maps the state that an earlier process of this task left. One that was
  // never opened has its initial values.
  //
  //   kNotFound  there is none, or the server has no part
  //   and what else VariableStore::Open() says
  static absl::StatusOr<std::unique_ptr<ShardState>> Open(
      const Options& options);

  int num_parts() const override { return static_cast<int>(parts_.size()); }
  size_t part_size(int part) const override;
  absl::StatusOr<size_t> GradientSize(int part,
                                      GradientType type) const override;
  const std::vector<PartSpec>& parts() const { return parts_; }
  // Of an existing part, for messages: its number and its variable.
  std::string PartName(int part) const;
  // Of an existing part: its value, and what is kept beside it.
  int num_tensors(int part) const {
    return 1 + static_cast<int>(slots_[parts_[part].variable].size());
  }
  // By variable of the model, what is kept beside it: slots, then an average.
  std::vector<std::vector<std::string>> SlotNames() const;
  // The optimizers' scalars. Those of a second Adam are called "beta1_power_1",
  // and so on.
  std::vector<std::string> ScalarNames() const;

  bool ClaimNext(int part) override ABSL_LOCKS_EXCLUDED(record_mutex_);
  LentBytes LendNext(int part) override ABSL_LOCKS_EXCLUDED(record_mutex_);
  absl::StatusOr<bool> Update(
      int part, int64_t step,
      absl::Span<const PartGradient> gradients) override;
  // Brings all moving averages to the committed step. Otherwise that of a part
  // follows when the part is updated next, since until then nobody reads it.
  absl::Status MoveAverages() ABSL_LOCKS_EXCLUDED(record_mutex_);
  absl::Status AdmitRows(int part, PartGradient& gradient) const override;
  absl::Status UpdateSparse(int part, int64_t step,
                            const SparseGradient& mean) override
      ABSL_LOCKS_EXCLUDED(record_mutex_);
  absl::Status BeginSparse(int part) override
      ABSL_LOCKS_EXCLUDED(record_mutex_);
  absl::Status CheckFinite(int part,
                           const PartGradient& gradient) const override;
  absl::Status MarkPrepared(int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(record_mutex_);
  void DropPrepared() override ABSL_LOCKS_EXCLUDED(record_mutex_);
  absl::Status Commit(int64_t step) override ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Opens the state at `step`; `scalars` are the optimizer's, empty for those
  // of step 0.
  //
  //   kInvalidArgument     another number of scalars, or a negative step
  //   kFailedPrecondition  open at another step
  absl::Status Activate(int64_t step, const std::vector<float>& scalars)
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Goes on from what Open() found: with `step`, committed or prepared. What
  // else was prepared is dropped.
  //
  //   kFailedPrecondition  `step` is neither
  absl::Status Resume(int64_t step) ABSL_LOCKS_EXCLUDED(record_mutex_);

  // The newest step record; where the server has no part, one of nothing.
  StepRecord record() const ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Kept in the step record, where the server has a part.
  void SetSettings(const RunSettings& settings)
      ABSL_LOCKS_EXCLUDED(record_mutex_);
  RunSettings settings() const ABSL_LOCKS_EXCLUDED(record_mutex_);

  // The committed value of an existing part and the step it is of; a copy
  // where updates are made in place.
  LentBytes LendCommitted(int part, int64_t& step) const
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Copies committed rows of a table out, in the order given; `rows` count
  // within the part. Returns the step they are of.
  //
  //   kInvalidArgument  no such part, no table, a row that it does not have, or
  //                     `out` of another length
  absl::StatusOr<int64_t> ReadRows(int part, absl::Span<const int64_t> rows,
                                   absl::Span<std::byte> out) const
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // The same of a part that grows, by keys. Rows that are not there come to be,
  // with initial values.
  //
  //   kInvalidArgument    besides the above: a negative key, or one of another
  //                       part
  //   kResourceExhausted  no room for them; none has come to be
  absl::StatusOr<int64_t> ReadKeys(int part, absl::Span<const int64_t> keys,
                                   absl::Span<std::byte> out)
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Keys and rows of a part that grows, ascending by key: of those that steps
  // have changed, which a checkpoint holds.
  std::vector<std::pair<int64_t, int64_t>> KeptRows(int part) const
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Copies rows of a committed tensor of a table out, of an existing part and
  // tensor; `out` has room for them. Returns the step they are of.
  int64_t CopyRows(int part, int tensor, absl::Span<const int64_t> rows,
                   absl::Span<std::byte> out) const
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // As Write(), of rows of a part that grows. From here on they are kept.
  //
  //   kResourceExhausted  besides the errors of Write(): no room for them
  absl::Status WriteRows(int part, int tensor, absl::Span<const int64_t> keys,
                         absl::Span<const std::byte> bytes)
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // What a process of this host needs to copy out what LentBytes::place says.
  struct Shared {
    SharedFile values;
    SharedFile counters;
  };
  //   kFailedPrecondition  updates are made in place, there is no part, or
  //                        sharing is turned off or not possible; says which
  absl::StatusOr<Shared> Share() const;

  // Of a committed tensor of a part. Returns the step it is of.
  //
  //   kInvalidArgument  unknown part or tensor, or `out` of another length
  absl::StatusOr<int64_t> Read(int part, int tensor,
                               absl::Span<std::byte> out) const
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Overwrites a stretch of a tensor of a part, from byte `first` on, before
  // Activate().
  //
  //   kInvalidArgument     unknown part or tensor, or beyond its end, or a part
  //                        that grows
  //   kFailedPrecondition  open already
  absl::Status Write(int part, int tensor, size_t first,
                     absl::Span<const std::byte> bytes)
      ABSL_LOCKS_EXCLUDED(record_mutex_);

  // The optimizer's scalars, as the next update will use them.
  std::vector<float> Scalars() const ABSL_LOCKS_EXCLUDED(record_mutex_);

  // As VariableStore::fences(); empty where the server has no part.
  absl::Span<std::byte> fences() const {
    return store_ == nullptr ? absl::Span<std::byte>() : store_->fences();
  }

  absl::Status SetEpoch(uint64_t epoch) ABSL_LOCKS_EXCLUDED(record_mutex_);

  // Deletes the state file: the job is done.
  absl::Status Remove() ABSL_LOCKS_EXCLUDED(record_mutex_);

 private:
  using Settings = std::vector<VariableSettings>;

  ShardState(const Options& options, Settings settings,
             std::shared_ptr<VariableStore> store);

  absl::Status MoveAverage(int part) ABSL_LOCKS_EXCLUDED(record_mutex_);
  // From the mean of gradients of rows; see RowLog.
  absl::Status UpdateTable(int part, int64_t step, const SparseGradient& mean)
      ABSL_LOCKS_EXCLUDED(record_mutex_);
  // An update in place of the next tensors of a table, or of so many rows at
  // the beginning of them.
  SparseApplyInput TableInput(int part, int64_t step, int64_t rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(record_mutex_);
  int64_t CopyRowsLocked(int part, int tensor, absl::Span<const int64_t> rows,
                         std::byte* to) const
      ABSL_LOCKS_EXCLUDED(record_mutex_);
  // Whether `out` has as many bytes as so many rows of a part, which is a
  // table.
  absl::Status CheckRead(int part, size_t rows, size_t size) const;
  absl::Status CheckPart(int part) const;
  LentBytes Lend(int buffer, absl::Span<const std::byte> value) const;
  // Which of the buffers of values is the part's next or committed one.
  int NextBuffer(int part) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(record_mutex_);
  int CommittedBuffer(int part) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(record_mutex_);

  const JobConfig job_;
  const std::vector<PartSpec> parts_;
  const std::vector<VariableSpec> variables_;
  const Settings settings_;                               // by variable
  const std::vector<Optimizer> optimizers_;               // of the job
  const std::vector<SparseOptimizer> sparse_optimizers_;  // likewise
  const std::vector<LearningRateConfig> rates_;
  const std::vector<std::vector<SlotSpec>> slots_;  // by variable
  const std::unique_ptr<Mutex[]> part_mutexes_;

  mutable Mutex record_mutex_;
  // Null when the server has no part. Tensors are guarded by part_mutexes_.
  const std::shared_ptr<VariableStore> store_;
  // In place: the step that the average of a part is of. Each is guarded by the
  // part's mutex.
  std::vector<int64_t> averaged_step_;
  // The buffers of values of part p are 2p and 2p + 1.
  const std::shared_ptr<LoanBook> loans_;
  const absl::StatusOr<std::unique_ptr<WriteCounters>> counters_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SHARD_SHARD_STATE_H_
