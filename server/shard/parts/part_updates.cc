#include "server/shard/parts/part_updates.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "server/shard/parts/part_gradients.h"
#include "server/shard/parts/row_gradients.h"
#include "server/update/moving_average.h"
#include "server/update/projection.h"
#include "server/update/update_kernels.h"

namespace lockstep::server {
namespace {

template <typename T>
std::vector<T> MakeAll(const std::vector<OptimizerConfig>& configs) {
  return std::vector<T>(configs.begin(), configs.end());
}

using AllFiniteKernel = bool (*)(size_t count, const std::byte* elements);

AllFiniteKernel KernelFor(DType dtype, GradientType type) {
  if (type == GradientType::kBFloat16 || dtype == DType::kBFloat16) {
    return AllFiniteBFloat16;
  }
  if (dtype == DType::kFloat16) return AllFiniteFloat16;
  return dtype == DType::kFloat64 ? AllFiniteDouble : AllFiniteFloat;
}

// Units: `element` counts bytes.
bool AllFinite(AllFiniteKernel kernel, size_t element, GradientReader reader,
               size_t elements) {
  // The scratch space is used only for a block that straddles two slices.
  constexpr size_t kBlock = 1024;
  alignas(64) std::byte scratch[kBlock * sizeof(double)];
  while (elements > 0) {
    const size_t count = std::min(elements, kBlock);
    const std::byte* block = reader.Next(count * element, scratch);
    if (!kernel(count, block)) return false;
    elements -= count;
  }
  return true;
}

}  // namespace

PartUpdates::PartUpdates(LockedParts& parts, PartValues& values,
                         SpanRecorder& spans, std::unique_ptr<MeanMemory> means)
    : parts_(parts),
      values_(values),
      spans_(spans),
      optimizers_(MakeAll<Optimizer>(parts.optimizers)),
      sparse_optimizers_(MakeAll<SparseOptimizer>(parts.optimizers)),
      rates_(LearningRatesOf(parts.job)),
      ring_places_(RingPlacesOf(parts.job.strategy.communication.bytes_per_pack,
                                parts.variables, parts.settings)),
      averaged_step_(parts.parts.size(), StepRecord::kNone),
      mean_memory_(std::move(means)),
      means_(parts.parts.size()) {}

absl::StatusOr<size_t> PartUpdates::GradientSize(int part,
                                                 GradientType type) const {
  if (parts_.parts[part].is_table()) {
    return absl::InvalidArgumentError(absl::StrCat(
        parts_.Name(part), " is a table of ", parts_.parts[part].num_rows(),
        " rows; its gradients and its reads name rows"));
  }
  const absl::StatusOr<size_t> element =
      GradientElementSize(parts_.parts[part].dtype, type);
  if (element.ok()) return parts_.parts[part].count * *element;
  return absl::InvalidArgumentError(
      absl::StrCat(parts_.Name(part), ": ", element.status().message()));
}

absl::Status PartUpdates::MoveAverage(int part) {
  const PartSpec& spec = parts_.parts[part];
  if (!parts_.settings[spec.variable].averaged) return absl::OkStatus();
  VariableStore::AverageMove move;
  int64_t step = 0;
  {
    MutexLock lock(parts_.record_mutex);
    step = parts_.store->committed_step();
    // The average of the opened step was written, not computed.
    if (step == parts_.store->record().opened_step) return absl::OkStatus();
    // In place a move cannot be repeated: it overwrites the average that it
    // starts from. With two buffers it starts from the other one.
    if (parts_.store->in_place() && step == averaged_step_[part]) {
      return absl::OkStatus();
    }
    move = parts_.store->MoveAverage(part);
  }
  // Without record_mutex: the part's lock is held, so nothing else writes these
  // tensors, not even a commit.
  std::optional<int64_t> updates;
  if (parts_.job.moving_average.count_steps) updates = step;
  if (move.from.data() != move.to.data()) {
    std::memcpy(move.to.data(), move.from.data(), move.to.size());
  }
  averaged_step_[part] = step;
  return UpdateAverage(spec.dtype,
                       AverageFactor(parts_.job.moving_average.decay, updates),
                       move.value, move.to);
}

absl::Status PartUpdates::MoveAverages() {
  for (int part = 0; part < num_parts(); ++part) {
    MutexLock part_lock(parts_.part_mutexes[part]);
    LOCKSTEP_RETURN_IF_ERROR(MoveAverage(part));
  }
  return absl::OkStatus();
}

absl::Status PartUpdates::KeepPart(int part) {
  MutexLock part_lock(parts_.part_mutexes[part]);
  LOCKSTEP_RETURN_IF_ERROR(MoveAverage(part));
  MutexLock lock(parts_.record_mutex);
  if (!parts_.parts[part].is_table()) values_.BeginWrite(part);
  parts_.store->CarryOver(part);
  return absl::OkStatus();
}

absl::Status PartUpdates::UpdateDense(int part, int64_t step,
                                      ApplyInput input) {
  const PartSpec& spec = parts_.parts[part];
  const VariableSettings& settings = parts_.settings[spec.variable];
  LOCKSTEP_RETURN_IF_ERROR(MoveAverage(part));
  {
    MutexLock lock(parts_.record_mutex);
    // Before the first byte is written: a process that copies the old value out
    // of this buffer must see that it was too slow.
    values_.BeginWrite(part);
    const ApplyInput stored = parts_.store->Update(part);
    input.dtype = stored.dtype;
    input.powers = stored.powers;
    input.updates = stored.updates;
    input.decays = stored.decays;
    input.step = step;
    input.old_value = stored.old_value;
    input.new_value = stored.new_value;
    input.old_slots = stored.old_slots;
    input.new_slots = stored.new_slots;
    // A buffer's gradient is its change, which is applied as it is.
    input.learning_rate = parts_.variables[spec.variable].buffer
                              ? 1
                              : LearningRate(rates_[settings.optimizer], step) *
                                    parts_.store->record().learning_rate_scale;
  }
  // The arithmetic of the step holds only the part's lock, so other parts are
  // updated and read meanwhile.
  LOCKSTEP_RETURN_IF_ERROR(optimizers_[settings.optimizer].Apply(input));
  CountUpdate(part);
  Project(settings.constraint, spec.dtype,
          RowElements(parts_.variables[spec.variable]), input.new_value);
  return absl::OkStatus();
}

absl::StatusOr<bool> PartUpdates::Update(
    int part, int64_t step, absl::Span<const PartGradient> gradients) {
  const SpanTimer timer(&spans_, UpdateOf(part, step));
  const std::vector<PartGradient> present = Present(gradients);
  if (present.empty() || !IsTrained(part)) {
    LOCKSTEP_RETURN_IF_ERROR(KeepPart(part));
    return true;
  }
  if (parts_.parts[part].is_table()) {
    const SparseGradient mean =
        MeanOfRows(parts_.parts[part], present, OrderOf(parts_.job, gradients));
    LOCKSTEP_RETURN_IF_ERROR(UpdateTable(part, step, mean));
    return true;  // rows were checked before they were added up
  }
  const std::vector<GradientSlices> slices = SlicesOf(present);
  ApplyInput input;
  const std::vector<int> order = OrderOf(parts_.job, gradients);
  input.gradients = slices;
  input.merges = order;
  input.divisor = DivisorOf(parts_.job, gradients);
  bool finite = true;
  if (parts_.job.refuse_non_finite) input.mean_is_finite = &finite;
  MutexLock part_lock(parts_.part_mutexes[part]);
  LOCKSTEP_RETURN_IF_ERROR(UpdateDense(part, step, input));
  return finite;
}

SparseApplyInput PartUpdates::TableInput(int part, int64_t step, int64_t rows) {
  const PartSpec& spec = parts_.parts[part];
  SparseApplyInput input;
  input.dtype = spec.dtype;
  const int optimizer = parts_.settings[spec.variable].optimizer;
  input.powers = parts_.store->committed_powers()[optimizer];
  input.updates = parts_.store->Updates(part);
  input.decays = parts_.settings[spec.variable].decays;
  input.step = step;
  input.learning_rate = LearningRate(rates_[optimizer], step) *
                        parts_.store->record().learning_rate_scale;
  const size_t size = rows * spec.row_width * ElementSize(spec.dtype);
  input.value = parts_.store->Next(part, 0).first(size);
  const size_t slots = NumSlots(optimizers_[optimizer].config());
  for (size_t slot = 0; slot < slots; ++slot) {
    input.slots[slot] = parts_.store->Next(part, slot + 1).first(size);
  }
  return input;
}

absl::Status PartUpdates::UpdateTable(int part, int64_t step,
                                      const SparseGradient& mean) {
  const PartSpec& spec = parts_.parts[part];
  const VariableSettings& settings = parts_.settings[spec.variable];
  const bool logged = parts_.store->is_logged(part);
  MutexLock part_lock(parts_.part_mutexes[part]);
  LOCKSTEP_RETURN_IF_ERROR(MoveAverage(part));
  SparseApplyInput input;
  std::vector<int64_t> shape = {spec.num_rows(), spec.row_width};
  std::vector<int64_t> indices = mean.indices;
  {
    MutexLock lock(parts_.record_mutex);
    if (logged) {
      // The rows are copied to the beginning of the next buffer, one after the
      // other, so the optimizer sees a small table with rows 0, 1, 2 and so on.
      parts_.store->tables().BeginRows(part, mean.indices);
      shape[0] = static_cast<int64_t>(indices.size());
      std::iota(indices.begin(), indices.end(), int64_t{0});
    } else {
      parts_.store->CarryOver(part);
    }
    input = TableInput(part, step, shape[0]);
  }
  input.decayed = parts_.store->in_place();  // BeginSparse() has done that
  input.shape = shape;
  input.indices = indices;
  input.values_shape = mean.values_shape;
  input.values = mean.values;
  // An optimizer or average that moves all rows runs even without a gradient.
  if (!indices.empty() || !logged) {
    LOCKSTEP_RETURN_IF_ERROR(
        sparse_optimizers_[settings.optimizer].Apply(input));
  }
  if (logged) {
    // The log gets the step after that of the record.
    MutexLock lock(parts_.record_mutex);
    parts_.store->tables().FinishRows(part);
  }
  CountUpdate(part);
  return absl::OkStatus();
}

void PartUpdates::CountUpdate(int part) {
  const int optimizer = parts_.settings[parts_.parts[part].variable].optimizer;
  if (!CountsUpdates(parts_.optimizers[optimizer])) return;
  MutexLock lock(parts_.record_mutex);
  parts_.store->CountUpdate(part);
}

absl::Status PartUpdates::UpdateSparse(int part, int64_t step,
                                       const SparseGradient& mean) {
  const SpanTimer timer(&spans_, UpdateOf(part, step));
  if (!IsTrained(part)) return KeepPart(part);
  return UpdateTable(part, step, mean);
}

absl::Status PartUpdates::BeginSparse(int part) {
  MutexLock part_lock(parts_.part_mutexes[part]);
  MutexLock lock(parts_.record_mutex);
  const int optimizer = parts_.settings[parts_.parts[part].variable].optimizer;
  std::vector<absl::Span<std::byte>> slots;
  for (size_t i = 0; i < NumSlots(optimizers_[optimizer].config()); ++i) {
    slots.push_back(parts_.store->Next(part, i + 1));
  }
  return sparse_optimizers_[optimizer].Decay(parts_.parts[part].dtype, slots);
}

absl::Status PartUpdates::AdmitRows(int part, PartGradient& gradient) const {
  const PartSpec& spec = parts_.parts[part];
  if (!spec.is_table()) return PartUpdater::AdmitRows(part, gradient);
  if (!spec.grows || !gradient.rows.has_value()) {
    return MakeCanonical(part, spec, gradient);
  }
  std::vector<int64_t> rows;
  {
    MutexLock part_lock(parts_.part_mutexes[part]);
    LOCKSTEP_ASSIGN_OR_RETURN(
        rows, parts_.store->tables().FindRows(part, gradient.rows->indices));
  }
  std::swap(gradient.rows->indices, rows);
  const absl::Status status = MakeCanonical(part, spec, gradient);
  // The gradient of a failed call keeps its keys.
  if (!status.ok()) gradient.rows->indices = std::move(rows);
  return status;
}

absl::Status PartUpdates::CheckFinite(int part,
                                      const PartGradient& gradient) const {
  PartSpec spec = parts_.parts[part];
  if (spec.is_table()) {
    // The gradient of a table has the elements of its rows only.
    spec.count = gradient.rows->shape[0] * spec.row_width;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(size_t element,
                            GradientElementSize(spec.dtype, gradient.type));
  if (AllFinite(KernelFor(spec.dtype, gradient.type), element,
                GradientReader(gradient.slices), spec.count)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "gradient of ", parts_.Name(part), ", elements ", spec.offset, " to ",
      spec.offset + spec.count - 1,
      ", holds NaN or an infinity; lower the learning rate, or set "
      "refuse_non_finite: false"));
}

absl::Status PartUpdates::MarkPrepared(int64_t step, int64_t attempt) {
  const int64_t now = spans_.Now();
  spans_.Add({.kind = SpanKind::kPrepare,
              .attempt = SpanAttempt(attempt),
              .step = step - 1,
              .begin = now,
              .end = now});
  MutexLock lock(parts_.record_mutex);
  if (parts_.store == nullptr || parts_.store->in_place())
    return absl::OkStatus();
  return parts_.store->MarkPrepared(step, attempt);
}

void PartUpdates::DropPrepared() {
  MutexLock lock(parts_.record_mutex);
  if (parts_.store != nullptr && !parts_.store->in_place())
    parts_.store->DropPrepared();
}

// A commit copies rows into their tables, so no call may read tables meanwhile.
// The locks of parts come before record_mutex; see LockedParts.
absl::Status PartUpdates::Commit(int64_t step) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const SpanTimer timer(&spans_, {.kind = SpanKind::kCommit, .step = step - 1});
  std::vector<std::unique_ptr<MutexLock>> tables;
  for (int part = 0; part < num_parts(); ++part) {
    if (!parts_.parts[part].is_table()) continue;
    tables.push_back(std::make_unique<MutexLock>(parts_.part_mutexes[part]));
  }
  MutexLock lock(parts_.record_mutex);
  if (parts_.store != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(parts_.store->Commit(step));
  SetLogStep(step);
  return absl::OkStatus();
}

}  // namespace lockstep::server
