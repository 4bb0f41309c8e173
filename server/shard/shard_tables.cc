// The part of ShardState that updates and reads tables.

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/optimizer/learning_rate.h"
#include "server/optimizer/projection.h"
#include "server/shard/row_gradients.h"
#include "server/shard/shard_state.h"

namespace lockstep {

SparseApplyInput ShardState::TableInput(int part, int64_t step, int64_t rows) {
  const PartSpec& spec = parts_[part];
  SparseApplyInput input;
  input.dtype = spec.dtype;
  const int optimizer = settings_[spec.variable].optimizer;
  input.powers = store_->committed_powers()[optimizer];
  input.learning_rate = LearningRate(rates_[optimizer], step) *
                        store_->record().learning_rate_scale;
  const size_t size = rows * spec.row_width * ElementSize(spec.dtype);
  input.value = store_->Next(part, 0).first(size);
  const size_t slots = NumSlots(optimizers_[optimizer].config());
  for (size_t slot = 0; slot < slots; ++slot) {
    input.slots[slot] = store_->Next(part, slot + 1).first(size);
  }
  return input;
}

absl::Status ShardState::UpdateTable(int part, int64_t step,
                                     const SparseGradient& mean) {
  const PartSpec& spec = parts_[part];
  const VariableSettings& settings = settings_[spec.variable];
  const bool logged = store_->is_logged(part);
  MutexLock part_lock(part_mutexes_[part]);
  LOCKSTEP_RETURN_IF_ERROR(MoveAverage(part));
  SparseApplyInput input;
  std::vector<int64_t> shape = {spec.num_rows(), spec.row_width};
  std::vector<int64_t> indices = mean.indices;
  {
    MutexLock lock(record_mutex_);
    if (logged) {
      store_->BeginRows(part, mean.indices);
      shape[0] = static_cast<int64_t>(indices.size());
      std::iota(indices.begin(), indices.end(), int64_t{0});
    } else {
      store_->CarryOver(part);
    }
    input = TableInput(part, step, shape[0]);
  }
  input.decayed = store_->in_place();  // BeginSparse() has done that
  input.shape = shape;
  input.indices = indices;
  input.values_shape = mean.values_shape;
  input.values = mean.values;
  if (!indices.empty() || !logged) {
    LOCKSTEP_RETURN_IF_ERROR(
        sparse_optimizers_[settings.optimizer].Apply(input));
    Project(settings.constraint, spec.dtype,
            RowElements(variables_[spec.variable]), input.value);
  }
  if (logged) store_->FinishRows(part);
  return absl::OkStatus();
}

absl::Status ShardState::UpdateSparse(int part, int64_t step,
                                      const SparseGradient& mean) {
  return UpdateTable(part, step, mean);
}

absl::Status ShardState::BeginSparse(int part) {
  MutexLock part_lock(part_mutexes_[part]);
  MutexLock lock(record_mutex_);
  const int optimizer = settings_[parts_[part].variable].optimizer;
  std::vector<absl::Span<std::byte>> slots;
  for (size_t i = 0; i < NumSlots(optimizers_[optimizer].config()); ++i) {
    slots.push_back(store_->Next(part, i + 1));
  }
  return sparse_optimizers_[optimizer].Decay(parts_[part].dtype, slots);
}

absl::Status ShardState::AdmitRows(int part, PartGradient& gradient) const {
  if (!parts_[part].is_table()) return PartUpdater::AdmitRows(part, gradient);
  return MakeCanonical(part, parts_[part], gradient);
}

absl::StatusOr<int64_t> ShardState::ReadRows(int part,
                                             absl::Span<const int64_t> rows,
                                             absl::Span<std::byte> out) const {
  if (part < 0 || part >= num_parts() || !parts_[part].is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of part ", part, ", which is no table"));
  }
  const PartSpec& spec = parts_[part];
  LOCKSTEP_RETURN_IF_ERROR(CheckRows(part, spec, rows));
  const size_t size = spec.row_width * ElementSize(spec.dtype);
  if (out.size() != rows.size() * size) {
    return absl::InvalidArgumentError(absl::StrCat(
        rows.size(), " rows of ", size, " bytes do not fit ", out.size()));
  }
  MutexLock part_lock(part_mutexes_[part]);
  const std::byte* from = nullptr;
  int64_t step = 0;
  {
    MutexLock lock(record_mutex_);
    from = store_->Committed(part, 0).data();
    step = store_->committed_step();
  }
  std::byte* to = out.data();
  for (const int64_t row : rows) {
    std::memcpy(to, from + static_cast<size_t>(row) * size, size);
    to += size;
  }
  return step;
}

}  // namespace lockstep
