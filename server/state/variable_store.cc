#include "server/state/variable_store.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/optimizer/slots.h"
#include "server/state/initializer.h"

namespace lockstep {
namespace {

absl::Status CheckPart(const std::vector<VariableSpec>& variables, size_t index,
                       const PartSpec& part) {
  const auto count = static_cast<int64_t>(variables.size());
  if (part.variable < 0 || part.variable >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", index, " is of variable ", part.variable,
                     "; the model has ", count));
  }
  const VariableSpec& variable = variables[part.variable];
  const int64_t elements = NumElements(variable.shape);
  const int64_t width = variable.is_table() ? RowWidth(variable.shape) : 0;
  if (part.dtype != variable.dtype || part.row_width != width ||
      !IsSlice(variable, {part.offset, part.count, part.row_stride})) {
    return absl::InvalidArgumentError(absl::StrCat(
        "part ", index, " (", std::string(DTypeName(part.dtype)), ", offset ",
        part.offset, ", count ", part.count, ") is no slice of variable ",
        variable.name, " (", std::string(DTypeName(variable.dtype)), ", ",
        elements, " elements)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<StateLayout> MakeLayout(const VariableStore::Options& options) {
  for (size_t i = 0; i < options.parts.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPart(options.variables, i, options.parts[i]));
  }
  return StateLayout::Make(options.parts, NumSlots(options.optimizer),
                           options.in_place ? 1 : 2);
}

// Initial values of a part, whose rows may be apart.
absl::Status FillPart(const InitialValues& values, const PartSpec& part,
                      absl::Span<std::byte> out) {
  if (part.row_stride == 1) return values.Fill(part.offset, out);
  const size_t size = part.row_width * ElementSize(part.dtype);
  for (int64_t row = 0; row < part.num_rows(); ++row) {
    LOCKSTEP_RETURN_IF_ERROR(
        values.Fill(part.offset + row * part.row_stride * part.row_width,
                    out.subspan(static_cast<size_t>(row) * size, size)));
  }
  return absl::OkStatus();
}

StateHeader MakeHeader(const VariableStore::Options& options,
                       const StateLayout& layout) {
  return {options.job_id, options.task_index,
          LayoutHash(options.variables, layout), layout.file_size()};
}

}  // namespace

VariableStore::VariableStore(const Options& options, StateLayout layout,
                             std::unique_ptr<StateFile> file)
    : variables_(options.variables),
      optimizer_(options.optimizer),
      layout_(std::move(layout)),
      file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<VariableStore>> VariableStore::Create(
    const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateLayout layout, MakeLayout(options));
  StepRecord record;
  record.incarnation = options.incarnation;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<StateFile> file,
      StateFile::Create(options.directory, MakeHeader(options, layout),
                        record));
  return std::unique_ptr<VariableStore>(
      new VariableStore(options, std::move(layout), std::move(file)));
}

absl::StatusOr<std::unique_ptr<VariableStore>> VariableStore::Open(
    const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateLayout layout, MakeLayout(options));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<StateFile> file,
      StateFile::Open(options.directory, MakeHeader(options, layout)));
  StepRecord record = file->record();
  record.incarnation = options.incarnation;
  file->WriteRecord(record);
  std::unique_ptr<VariableStore> store(
      new VariableStore(options, std::move(layout), std::move(file)));
  if (store->is_active()) store->ApplyLogs();
  return store;
}

absl::Status VariableStore::Discard(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateLayout layout, MakeLayout(options));
  return StateFile::Discard(options.directory, MakeHeader(options, layout));
}

AdamPowers VariableStore::committed_powers() const {
  return record().powers[record().current_buffer];
}

absl::Span<std::byte> VariableStore::Tensor(size_t part, size_t tensor,
                                            int buffer) const {
  return file_->bytes().subspan(layout_.TensorOffset(part, tensor, buffer),
                                layout_.TensorSize(part));
}

int VariableStore::NextBuffer() const {
  return in_place() ? 0 : 1 - static_cast<int>(record().current_buffer);
}

absl::Span<const std::byte> VariableStore::Committed(size_t part,
                                                     size_t tensor) const {
  return Tensor(part, tensor, CommittedBuffer(part));
}

absl::Span<std::byte> VariableStore::Next(size_t part, size_t tensor) {
  return Tensor(part, tensor, in_place() ? 0 : 1 - CommittedBuffer(part));
}

int VariableStore::CommittedBuffer(size_t part) const {
  return is_logged(part) ? 0 : static_cast<int>(record().current_buffer);
}

bool VariableStore::is_logged(size_t part) const {
  return !in_place() && this->part(part).is_table() &&
         optimizer_.kind != OptimizerConfig::Kind::kAdam;
}

RowLog VariableStore::Log(size_t part) const {
  return RowLog(
      file_->bytes().subspan(layout_.LogOffset(part), layout_.LogSize(part)));
}

void VariableStore::BeginRows(size_t part, absl::Span<const int64_t> rows) {
  Log(part).Begin(rows);
  const size_t size =
      this->part(part).row_width * ElementSize(this->part(part).dtype);
  for (size_t tensor = 0; tensor < num_tensors(); ++tensor) {
    const std::byte* from = Committed(part, tensor).data();
    std::byte* to = Next(part, tensor).data();
    for (const int64_t row : rows) {
      std::memcpy(to, from + static_cast<size_t>(row) * size, size);
      to += size;
    }
  }
}

void VariableStore::FinishRows(size_t part) {
  Log(part).Finish(committed_step() + 1);
}

void VariableStore::ApplyLogs() {
  for (size_t i = 0; i < num_parts(); ++i) {
    if (!is_logged(i) || Log(i).step() != committed_step()) continue;
    const size_t size = part(i).row_width * ElementSize(part(i).dtype);
    const int64_t num_rows = part(i).num_rows();
    for (size_t tensor = 0; tensor < num_tensors(); ++tensor) {
      const std::byte* from = Tensor(i, tensor, 1).data();
      std::byte* to = Tensor(i, tensor, 0).data();
      for (const int64_t row : Log(i).rows()) {
        if (row < 0 || row >= num_rows) break;  // not what was written
        std::memcpy(to + static_cast<size_t>(row) * size, from, size);
        from += size;
      }
    }
  }
}

ApplyInput VariableStore::Update(size_t part) {
  ApplyInput input;
  input.dtype = this->part(part).dtype;
  input.powers = committed_powers();
  input.old_value = Committed(part, 0);
  input.new_value = Next(part, 0);
  for (size_t slot = 0; slot + 1 < num_tensors(); ++slot) {
    input.old_slots[slot] = Committed(part, slot + 1);
    input.new_slots[slot] = Next(part, slot + 1);
  }
  return input;
}

void VariableStore::CarryOver(size_t part) {
  if (in_place()) return;
  if (is_logged(part)) {
    Log(part).Clear();
    return;
  }
  for (size_t tensor = 0; tensor < num_tensors(); ++tensor) {
    const absl::Span<const std::byte> from = Committed(part, tensor);
    std::memcpy(Next(part, tensor).data(), from.data(), from.size());
  }
}

absl::StatusOr<size_t> VariableStore::FindTensor(size_t part,
                                                 absl::string_view name) const {
  if (part < num_parts()) {
    const std::string& variable = variables_[this->part(part).variable].name;
    if (name == variable) return 0;
    const std::vector<std::string> slots = SlotNames(optimizer_);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (name == SlotVariableName(variable, slots[i])) return i + 1;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("part ", part, " has no tensor named ", name));
}

absl::Status VariableStore::CheckTensor(size_t part, size_t tensor,
                                        size_t size) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckStretch(part, tensor, 0, size));
  const size_t whole = layout_.TensorSize(part);
  if (size == whole) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("part ", part, " has ", whole, " bytes, not ", size));
}

absl::Status VariableStore::CheckStretch(size_t part, size_t tensor,
                                         size_t first, size_t size) const {
  if (part >= num_parts() || tensor >= num_tensors()) {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", part, ", tensor ", tensor, ": this server has ",
                     num_parts(), " parts of ", num_tensors(), " tensors"));
  }
  const size_t whole = layout_.TensorSize(part);
  if (first <= whole && size <= whole - first) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("part ", part, " has ", whole,
                                                 " bytes, not ", size,
                                                 " from byte ", first, " on"));
}

absl::Status VariableStore::CheckNotActive(absl::string_view action) const {
  if (!is_active()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", action, " variables: they are in use, at step ",
                   committed_step()));
}

absl::Status VariableStore::ReadTensor(size_t part, size_t tensor,
                                       absl::Span<std::byte> out) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensor(part, tensor, out.size()));
  std::memcpy(out.data(), Committed(part, tensor).data(), out.size());
  return absl::OkStatus();
}

absl::Status VariableStore::WriteTensor(size_t part, size_t tensor,
                                        absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensor(part, tensor, bytes.size()));
  return WriteStretch(part, tensor, 0, bytes);
}

absl::Status VariableStore::WriteStretch(size_t part, size_t tensor,
                                         size_t first,
                                         absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckStretch(part, tensor, first, bytes.size()));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotActive("overwrite"));
  const int buffer = static_cast<int>(record().current_buffer);
  std::memcpy(Tensor(part, tensor, buffer).data() + first, bytes.data(),
              bytes.size());
  return absl::OkStatus();
}

absl::Status VariableStore::Initialize(uint64_t seed) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNotActive("initialise"));
  const int buffer = static_cast<int>(record().current_buffer);
  const std::vector<SlotSpec> slots = Slots(optimizer_);
  std::optional<InitialValues> values;  // of the variable of the part before
  for (size_t i = 0; i < num_parts(); ++i) {
    if (i == 0 || part(i).variable != part(i - 1).variable) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          values, InitialValues::Make(variables_[part(i).variable], seed));
    }
    LOCKSTEP_RETURN_IF_ERROR(FillPart(*values, part(i), Tensor(i, 0, buffer)));
    for (size_t tensor = 1; tensor < num_tensors(); ++tensor) {
      FillElements(part(i).dtype, slots[tensor - 1].initial_value,
                   Tensor(i, tensor, buffer));
    }
  }
  return absl::OkStatus();
}

absl::Status VariableStore::Activate(int64_t step, AdamPowers powers) {
  if (step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("global step ", step, " must be at least 0"));
  }
  if (is_active() && step == committed_step()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckNotActive("activate"));
  StepRecord next = record();
  next.committed_step = step;
  next.powers[next.current_buffer] = powers;
  file_->WriteRecord(next);
  return absl::OkStatus();
}

absl::Status VariableStore::MarkPrepared(int64_t step, int64_t attempt) {
  if (attempt < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("attempt ", attempt, " must be at least 0"));
  }
  if (in_place() || !is_active() || step != committed_step() + 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot prepare step ", step, " after step ", committed_step(),
        in_place() ? ": variables are updated in place" : ""));
  }
  StepRecord next = record();
  next.prepared_step = step;
  next.attempt = attempt;
  next.powers[NextBuffer()] = NextAdamPowers(optimizer_, committed_powers());
  file_->WriteRecord(next);
  return absl::OkStatus();
}

void VariableStore::DropPrepared() {
  if (record().prepared_step == StepRecord::kNone) return;
  StepRecord next = record();
  next.prepared_step = StepRecord::kNone;
  file_->WriteRecord(next);
}

absl::Status VariableStore::Commit(int64_t step) {
  if (is_active() && step == committed_step()) return absl::OkStatus();
  const bool is_ready = in_place() ? is_active() && step == committed_step() + 1
                                   : step == record().prepared_step;
  if (!is_ready || step < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot commit step ", step, " after step ", committed_step(),
        ": step ", record().prepared_step, " is prepared (-1: none)"));
  }
  StepRecord next = record();
  next.committed_step = step;
  next.prepared_step = StepRecord::kNone;
  next.current_buffer = static_cast<uint32_t>(NextBuffer());
  if (in_place()) {
    next.powers[0] = NextAdamPowers(optimizer_, committed_powers());
  }
  file_->WriteRecord(next);
  ApplyLogs();
  return absl::OkStatus();
}

absl::Status VariableStore::SetEpoch(uint64_t epoch) {
  if (epoch < record().epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("epoch ", epoch, " is older than epoch ", record().epoch,
                     ": this chief has been replaced and must end"));
  }
  StepRecord next = record();
  next.epoch = epoch;
  file_->WriteRecord(next);
  return absl::OkStatus();
}

absl::Status VariableStore::SetRuntimeSettings(int64_t replicas_to_aggregate,
                                               double learning_rate_scale) {
  if (replicas_to_aggregate < 0 || !std::isfinite(learning_rate_scale) ||
      learning_rate_scale < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("replicas_to_aggregate ", replicas_to_aggregate,
                     " and learning_rate_scale ", learning_rate_scale,
                     " must be finite and at least 0"));
  }
  StepRecord next = record();
  next.replicas_to_aggregate = replicas_to_aggregate;
  next.learning_rate_scale = learning_rate_scale;
  file_->WriteRecord(next);
  return absl::OkStatus();
}

}  // namespace lockstep
