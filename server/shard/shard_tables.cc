// The part of ShardState that updates and reads tables.

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/learning_rate.h"
#include "server/shard/row_gradients.h"
#include "server/shard/shard_state.h"
#include "server/update/projection.h"

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
  const PartSpec& spec = parts_[part];
  if (!spec.is_table()) return PartUpdater::AdmitRows(part, gradient);
  if (!spec.grows || !gradient.rows.has_value()) {
    return MakeCanonical(part, spec, gradient);
  }
  std::vector<int64_t> rows;
  {
    MutexLock part_lock(part_mutexes_[part]);
    LOCKSTEP_ASSIGN_OR_RETURN(rows,
                              store_->FindRows(part, gradient.rows->indices));
  }
  std::swap(gradient.rows->indices, rows);
  const absl::Status status = MakeCanonical(part, spec, gradient);
  if (!status.ok()) gradient.rows->indices = std::move(rows);
  return status;
}

absl::Status ShardState::CheckRead(int part, size_t rows, size_t size) const {
  if (part < 0 || part >= num_parts() || !parts_[part].is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of part ", part, ", which is no table"));
  }
  const size_t row = parts_[part].row_width * ElementSize(parts_[part].dtype);
  if (size == rows * row) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(rows, " rows of ", PartName(part), ", of ", row,
                   " bytes each, do not fit ", size, " bytes"));
}

absl::StatusOr<int64_t> ShardState::ReadRows(int part,
                                             absl::Span<const int64_t> rows,
                                             absl::Span<std::byte> out) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckRead(part, rows.size(), out.size()));
  LOCKSTEP_RETURN_IF_ERROR(CheckRows(part, parts_[part], rows));
  return CopyRows(part, 0, rows, out);
}

absl::StatusOr<int64_t> ShardState::ReadKeys(int part,
                                             absl::Span<const int64_t> keys,
                                             absl::Span<std::byte> out) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRead(part, keys.size(), out.size()));
  MutexLock part_lock(part_mutexes_[part]);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                            store_->MakeRows(part, keys, job_.seed));
  return CopyRowsLocked(part, 0, rows, out.data());
}

int64_t ShardState::CopyRows(int part, int tensor,
                             absl::Span<const int64_t> rows,
                             absl::Span<std::byte> out) const {
  MutexLock part_lock(part_mutexes_[part]);
  return CopyRowsLocked(part, tensor, rows, out.data());
}

int64_t ShardState::CopyRowsLocked(int part, int tensor,
                                   absl::Span<const int64_t> rows,
                                   std::byte* to) const {
  const size_t size = parts_[part].row_width * ElementSize(parts_[part].dtype);
  const std::byte* from = nullptr;
  int64_t step = 0;
  {
    MutexLock lock(record_mutex_);
    from = store_->Committed(part, tensor).data();
    step = store_->committed_step();
  }
  for (const int64_t row : rows) {
    std::memcpy(to, from + static_cast<size_t>(row) * size, size);
    to += size;
  }
  return step;
}

std::vector<std::pair<int64_t, int64_t>> ShardState::KeptRows(int part) const {
  MutexLock part_lock(part_mutexes_[part]);
  return store_->KeptRows(part);
}

absl::Status ShardState::WriteRows(int part, int tensor,
                                   absl::Span<const int64_t> keys,
                                   absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPart(part));
  MutexLock part_lock(part_mutexes_[part]);
  MutexLock lock(record_mutex_);
  if (tensor < 0) {
    return absl::InvalidArgumentError(absl::StrCat("tensor is ", tensor));
  }
  return store_->WriteRows(part, tensor, keys, job_.seed, bytes);
}

}  // namespace lockstep
