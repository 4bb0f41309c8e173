#ifndef LOCKSTEP_SERVER_SHARD_PARTS_PART_UPDATES_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_PART_UPDATES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/job/learning_rate.h"
#include "common/trace/span_recorder.h"
#include "server/shard/parts/locked_parts.h"
#include "server/shard/parts/mean_memory.h"
#include "server/shard/parts/part_values.h"
#include "server/shard/parts/ring_means.h"
#include "server/step/engine.h"
#include "server/update/optimizer.h"
#include "server/update/sparse_optimizer.h"

namespace lockstep::server {

// PartUpdates moves the parts of a server from step to step: it is the
// arithmetic behind the engine.
//
// Threads: safe to share.
// Borrows: the parts and their values, and the recorder of updates and commits.
class PartUpdates final : public PartUpdater {
 public:
  // `means` is the memory of mean gradients.
  PartUpdates(LockedParts& parts, PartValues& values, SpanRecorder& spans,
              std::unique_ptr<MeanMemory> means);

  int num_parts() const override { return parts_.num_parts(); }
  size_t part_size(int part) const override { return parts_.size(part); }
  absl::StatusOr<size_t> GradientSize(int part,
                                      GradientType type) const override;
  bool ClaimNext(int part) override { return values_.ClaimNext(part); }
  LentBytes LendNext(int part) override { return values_.LendNext(part); }
  absl::StatusOr<bool> Update(
      int part, int64_t step,
      absl::Span<const PartGradient> gradients) override;
  absl::StatusOr<Measured> MeasureMean(
      int part, absl::Span<const PartGradient> gradients) override
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  absl::Status ApplyMean(int part, int64_t step, double norm) override
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  PartGradient LendMean(int part) override;
  absl::StatusOr<double> KeepMean(int part, PartGradient mean) override;
  absl::Status AdmitRows(int part, PartGradient& gradient) const override;
  absl::Status UpdateSparse(int part, int64_t step,
                            const SparseGradient& mean) override
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  absl::Status BeginSparse(int part) override
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  absl::Status CheckFinite(int part,
                           const PartGradient& gradient) const override;
  absl::Status MarkPrepared(int64_t step, int64_t attempt) override
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  void DropPrepared() override ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  absl::Status Commit(int64_t step) override
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // As MeanMemory::files().
  std::optional<MeanMemory::Files> mean_files() const {
    return mean_memory_->files();
  }

  // Brings all moving averages to the committed step. Must be called before
  // averages are read: Update() moves the average of a part one step late.
  // Errors: those of UpdateAverage().
  absl::Status MoveAverages() ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

 private:
  // The mean gradient of a part, until it is applied and, in a mirrored job,
  // the other servers have it.
  struct Mean {
    // As StoreMean() writes it; absent if there was no gradient at all.
    PartGradient dense{.absent = true};
    // The memory of `dense` if this server computed it.
    std::shared_ptr<MeanMemory::Buffer> memory;
    // The mean of a table, unless absent. Answers to other servers share it.
    std::shared_ptr<const SparseGradient> rows;
  };

  // The span of an update of `part` after `step`.
  static Span UpdateOf(int part, int64_t step) {
    return {.kind = SpanKind::kUpdate, .part = part, .step = step};
  }
  absl::Status MoveAverage(int part) ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  // As KeepMean(), for a table.
  absl::StatusOr<double> KeepRows(int part, PartGradient mean);
  // Returns the sum of the squares of a table's mean. The caller must hold the
  // part's lock.
  double SquaresOfRows(int part, const SparseGradient& mean) const;
  // True unless the part's variable is an untrained one.
  bool IsTrained(int part) const {
    return parts_.settings[parts_.parts[part].variable].trained;
  }
  // Updates a part that has no gradient, or whose variable is not trained: only
  // its average moves.
  absl::Status KeepPart(int part) ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  // Updates a part that is no table. `input` must have gradients, divisor and
  // scale. The caller must hold the part's lock.
  absl::Status UpdateDense(int part, int64_t step, ApplyInput input)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  // Updates a table from the mean of gradients of rows; see RowLog.
  absl::Status UpdateTable(int part, int64_t step, const SparseGradient& mean)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  // Counts an update of a part whose optimizer depends on their number.
  void CountUpdate(int part) ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  // An update in place of the first `rows` rows of a table's next tensors.
  SparseApplyInput TableInput(int part, int64_t step, int64_t rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(parts_.record_mutex);

  LockedParts& parts_;
  PartValues& values_;
  SpanRecorder& spans_;
  const std::vector<Optimizer> optimizers_;               // of the job
  const std::vector<SparseOptimizer> sparse_optimizers_;  // likewise
  const std::vector<LearningRateConfig> rates_;           // likewise
  const std::vector<RingPlace> ring_places_;              // by variable
  // By part, in compatible mode: the step of its average. Guarded by the part's
  // mutex.
  std::vector<int64_t> averaged_step_;
  // Calls for a part are guarded by the part's mutex.
  const std::unique_ptr<MeanMemory> mean_memory_;
  // By part, where means are kept. Guarded by the part's mutex.
  std::vector<Mean> means_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_PART_UPDATES_H_
