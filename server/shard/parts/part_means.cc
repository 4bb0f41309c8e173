// The means that PartUpdates keeps between the two halves of an update, and
// exchanges with the other servers of a mirrored job.

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/shard/parts/part_gradients.h"
#include "server/shard/parts/part_updates.h"
#include "server/shard/parts/ring_means.h"
#include "server/shard/parts/row_gradients.h"
#include "server/update/mean_norm.h"

namespace lockstep::server {
namespace {

// Must be called after the bytes of a mean have been read. Returns kAborted if
// another server has begun to write there.
absl::Status CheckUnwritten(const PartGradient& mean) {
  if (!mean.peer_writes.has_value() || !mean.peer_writes->HaveBegun()) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      "the server that lends the mean computes another one");
}

}  // namespace

absl::StatusOr<PartUpdater::Measured> PartUpdates::MeasureMean(
    int part, absl::Span<const PartGradient> gradients) {
  const PartSpec& spec = parts_.parts[part];
  const std::vector<PartGradient> present = Present(gradients);
  MutexLock part_lock(parts_.part_mutexes[part]);
  Mean& mean = means_[part];
  mean.dense = {.absent = present.empty() || !IsTrained(part)};
  if (mean.dense.absent) return Measured();
  if (spec.is_table()) {
    mean.rows = std::make_shared<const SparseGradient>(
        MeanOfRows(spec, present, OrderOf(parts_.job, gradients)));
    return Measured{true, parts_.job.clipping.limits_mean()
                              ? SquaresOfRows(part, *mean.rows)
                              : 0};
  }
  // The previous mean may still be in an answer to another server, so its
  // memory is not written.
  mean.memory = mean_memory_->Renew(part, MeanSize(spec.dtype, spec.count),
                                    std::move(mean.memory));
  const bool measure = parts_.job.clipping.limits_mean();
  const bool ring = parts_.job.strategy.communication.order == SumOrder::kRing;
  const MeanOutcome stored =
      ring ? StoreRingMean(spec, ring_places_[spec.variable], gradients,
                           mean.memory->bytes, measure)
           : StoreMean(spec.dtype, SlicesOf(present),
                       DivisorOf(parts_.job, gradients), mean.memory->bytes,
                       OrderOf(parts_.job, gradients), measure);
  mean.dense.slices = {{mean.memory->bytes.data(), mean.memory->bytes.size()}};
  // Buffers are not trained, so the norm leaves them out.
  return Measured{stored.finite || !parts_.job.refuse_non_finite,
                  parts_.variables[spec.variable].buffer ? 0 : stored.squares};
}

double PartUpdates::SquaresOfRows(int part, const SparseGradient& mean) const {
  const PartSpec& spec = parts_.parts[part];
  if (!spec.grows) return SumOfSquares(spec.dtype, mean.values);
  // The bits of a sum depend on its order, which must not be that in which
  // workers happened to read new keys.
  const size_t size = spec.row_width * ElementSize(spec.dtype);
  std::vector<std::byte> by_key;
  by_key.reserve(mean.values.size());
  for (const size_t place :
       parts_.store->tables().PlacesByKey(part, mean.indices)) {
    const std::byte* row = mean.values.data() + place * size;
    by_key.insert(by_key.end(), row, row + size);
  }
  return SumOfSquares(spec.dtype, by_key);
}

PartGradient PartUpdates::LendMean(int part) {
  MutexLock part_lock(parts_.part_mutexes[part]);
  PartGradient lent = means_[part].dense;
  if (parts_.parts[part].is_table() && !lent.absent) {
    const std::shared_ptr<const SparseGradient> rows = means_[part].rows;
    lent.rows = GradientRows{rows->indices, rows->values_shape};
    lent.slices = {{rows->values.data(), rows->values.size()}};
    lent.owner = rows;
    return lent;
  }
  lent.owner = means_[part].memory;
  if (means_[part].memory != nullptr) {
    lent.place = mean_memory_->PlaceOf(part, *means_[part].memory);
  }
  return lent;
}

absl::StatusOr<double> PartUpdates::KeepRows(int part, PartGradient mean) {
  const PartSpec& spec = parts_.parts[part];
  std::shared_ptr<const SparseGradient> rows;
  if (!mean.absent) {
    LOCKSTEP_RETURN_IF_ERROR(MakeCanonical(part, spec, mean));
    // The mean of a single gradient is that gradient, bit for bit.
    rows = std::make_shared<const SparseGradient>(
        MeanOfRows(spec, absl::MakeConstSpan(&mean, 1)));
  }
  const bool measured = parts_.job.clipping.limits_mean() && rows != nullptr;
  const double squares = measured ? SumOfSquares(spec.dtype, rows->values) : 0;
  MutexLock part_lock(parts_.part_mutexes[part]);
  means_[part].dense = {.absent = mean.absent};
  means_[part].rows = std::move(rows);
  return squares;
}

absl::StatusOr<double> PartUpdates::KeepMean(int part, PartGradient mean) {
  const PartSpec& spec = parts_.parts[part];
  if (spec.is_table()) return KeepRows(part, std::move(mean));
  size_t size = 0;
  for (const ByteSlice& slice : mean.slices) size += slice.size;
  const size_t wanted = mean.absent ? 0 : MeanSize(spec.dtype, spec.count);
  if (size != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the mean of ", parts_.Name(part), " has ", size,
                     " bytes, but must have ", wanted));
  }
  double squares = 0;
  if (parts_.job.clipping.limits_mean() && !mean.absent &&
      !parts_.variables[spec.variable].buffer) {
    // In one range: the sum must have the same bits as that of the server which
    // computed the mean.
    std::vector<std::byte> whole;
    whole.reserve(size);
    for (const ByteSlice& slice : mean.slices) {
      whole.insert(whole.end(), slice.data, slice.data + slice.size);
    }
    squares = SumOfSquares(MeanType(spec.dtype), whole);
    LOCKSTEP_RETURN_IF_ERROR(CheckUnwritten(mean));
  }
  MutexLock part_lock(parts_.part_mutexes[part]);
  means_[part].dense = std::move(mean);
  return squares;
}

absl::Status PartUpdates::ApplyMean(int part, int64_t step, double norm) {
  const SpanTimer timer(&spans_, UpdateOf(part, step));
  const PartSpec& spec = parts_.parts[part];
  const bool limited = parts_.job.clipping.limits_mean() &&
                       !parts_.variables[spec.variable].buffer;
  const double scale =
      limited ? ClippingScale(parts_.job.clipping.limit, norm) : 1;
  SparseGradient rows;
  bool absent = false;
  {
    MutexLock part_lock(parts_.part_mutexes[part]);
    const Mean& mean = means_[part];
    absent = mean.dense.absent;
    if (!absent && !spec.is_table()) {
      const GradientSlices all = {mean.dense.slices};
      ApplyInput input;
      input.gradients = absl::MakeConstSpan(&all, 1);
      input.scale = scale;
      input.is_mean = true;
      LOCKSTEP_RETURN_IF_ERROR(UpdateDense(part, step, input));
      return CheckUnwritten(mean.dense);
    }
    // A copy, because the kept mean must survive a repeated call.
    if (!absent) rows = *mean.rows;
  }
  // KeepPart() and UpdateTable() take the part's lock themselves.
  if (absent) return KeepPart(part);
  ScaleElements(spec.dtype, scale, absl::MakeSpan(rows.values));
  return UpdateTable(part, step, rows);
}

}  // namespace lockstep::server
