#include "server/state/variable_store.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/update/slots.h"

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
      part.grows != variable.grows() ||
      !IsSlice(variable, {part.offset, part.count, part.row_stride})) {
    return absl::InvalidArgumentError(absl::StrCat(
        "part ", index, " (", std::string(DTypeName(part.dtype)), ", offset ",
        part.offset, ", count ", part.count, ") is no slice of variable ",
        variable.name, " (", std::string(DTypeName(variable.dtype)), ", ",
        elements, " elements)"));
  }
  return absl::OkStatus();
}

// In every step, whatever gradients are of.
bool MovesAllRows(const VariableSettings& settings,
                  const std::vector<OptimizerConfig>& optimizers) {
  return settings.averaged ||
         optimizers[settings.optimizer].kind == OptimizerConfig::Kind::kAdam;
}

absl::StatusOr<StateLayout> MakeLayout(const VariableStore::Options& options) {
  const std::vector<std::vector<SlotSpec>> slots =
      SlotsByVariable(options.optimizers, options.settings);
  if (slots.size() != options.variables.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(slots.size(), " settings for ", options.variables.size(),
                     " variables"));
  }
  std::vector<size_t> num_tensors;
  for (size_t i = 0; i < options.parts.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPart(options.variables, i, options.parts[i]));
    if (options.parts[i].grows &&
        MovesAllRows(options.settings[options.parts[i].variable],
                     options.optimizers)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "part ", i,
          " grows, but its optimizer or a moving average moves all "
          "rows in every step; leave that out"));
    }
    num_tensors.push_back(1 + slots[options.parts[i].variable].size());
  }
  return StateLayout::Make(options.parts, std::move(num_tensors),
                           options.in_place ? 1 : 2);
}

uint64_t BytesToInitialize(const StateLayout& layout) {
  uint64_t bytes = 0;
  for (size_t part = 0; part < layout.parts().size(); ++part) {
    bytes += layout.num_tensors(part) * layout.TensorSize(part);
  }
  return bytes;
}

StateHeader MakeHeader(const VariableStore::Options& options,
                       const StateLayout& layout) {
  return {options.job_id, options.task_index,
          LayoutHash(options.variables, layout), layout.file_size()};
}

}  // namespace

std::vector<std::vector<SlotSpec>> SlotsByVariable(
    const std::vector<OptimizerConfig>& optimizers,
    const std::vector<VariableSettings>& settings) {
  std::vector<std::vector<SlotSpec>> slots;
  for (const VariableSettings& setting : settings) {
    slots.push_back(Slots(optimizers[setting.optimizer]));
    if (setting.averaged) slots.back().push_back(MovingAverageSlot());
  }
  return slots;
}

VariableStore::VariableStore(const Options& options, StateLayout layout,
                             std::unique_ptr<StateFile> file)
    : variables_(options.variables),
      optimizers_(options.optimizers),
      settings_(options.settings),
      slots_(SlotsByVariable(optimizers_, settings_)),
      progress_(options.progress),
      layout_(std::move(layout)),
      file_(std::move(file)) {}

absl::Status VariableStore::CheckOptions(const Options& options) {
  return MakeLayout(options).status();
}

absl::StatusOr<std::unique_ptr<VariableStore>> VariableStore::Create(
    const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateLayout layout, MakeLayout(options));
  StepRecord record;
  record.incarnation = options.incarnation;
  if (options.progress != nullptr) {
    // Initialize() follows; who waits is not to see the end come twice.
    options.progress->Expect(layout.file_size() + BytesToInitialize(layout));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<StateFile> file,
      StateFile::Create(options.directory, MakeHeader(options, layout), record,
                        options.progress.get()));
  std::unique_ptr<VariableStore> store(
      new VariableStore(options, std::move(layout), std::move(file)));
  LOCKSTEP_RETURN_IF_ERROR(store->OpenDirectories());
  return store;
}

absl::StatusOr<std::unique_ptr<VariableStore>> VariableStore::Open(
    const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateLayout layout, MakeLayout(options));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<StateFile> file,
      StateFile::Open(options.directory, MakeHeader(options, layout)));
  std::unique_ptr<VariableStore> store(
      new VariableStore(options, std::move(layout), std::move(file)));
  LOCKSTEP_RETURN_IF_ERROR(store->OpenDirectories());
  if (options.progress != nullptr && !store->is_active()) {
    options.progress->Expect(BytesToInitialize(store->layout_));
  }
  StepRecord record = store->record();
  record.incarnation = options.incarnation;
  store->file_->WriteRecord(record);
  if (store->is_active()) store->ApplyLogs();
  return store;
}

absl::Status VariableStore::Discard(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateLayout layout, MakeLayout(options));
  return StateFile::Discard(options.directory, MakeHeader(options, layout));
}

const AllAdamPowers& VariableStore::committed_powers() const {
  return record().powers[record().current_buffer];
}

AllAdamPowers VariableStore::NextPowers() const {
  AllAdamPowers next = {};
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    next[i] = NextAdamPowers(optimizers_[i], committed_powers()[i]);
  }
  return next;
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
         !MovesAllRows(settings_[this->part(part).variable], optimizers_);
}

RowLog VariableStore::Log(size_t part) const {
  return RowLog(
      file_->bytes().subspan(layout_.LogOffset(part), layout_.LogSize(part)));
}

size_t VariableStore::RowSize(size_t part) const {
  return this->part(part).row_width * ElementSize(this->part(part).dtype);
}

void VariableStore::BeginRows(size_t part, absl::Span<const int64_t> rows) {
  Log(part).Begin(rows);
  const size_t size = RowSize(part);
  for (size_t tensor = 0; tensor < num_tensors(part); ++tensor) {
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
    const size_t size = RowSize(i);
    const int64_t num_rows = part(i).num_rows();
    for (size_t tensor = 0; tensor < num_tensors(i); ++tensor) {
      const std::byte* from = Tensor(i, tensor, 1).data();
      std::byte* to = Tensor(i, tensor, 0).data();
      for (const int64_t row : Log(i).rows()) {
        if (row < 0 || row >= num_rows) break;  // not what was written
        std::memcpy(to + static_cast<size_t>(row) * size, from, size);
        from += size;
      }
    }
    if (directories_[i] == nullptr) continue;
    for (const int64_t row : Log(i).rows()) directories_[i]->Keep(row);
  }
}

ApplyInput VariableStore::Update(size_t part) {
  ApplyInput input;
  input.dtype = this->part(part).dtype;
  const int optimizer = settings_[this->part(part).variable].optimizer;
  input.powers = committed_powers()[optimizer];
  input.old_value = Committed(part, 0);
  input.new_value = Next(part, 0);
  for (size_t slot = 0; slot < NumSlots(optimizers_[optimizer]); ++slot) {
    input.old_slots[slot] = Committed(part, slot + 1);
    input.new_slots[slot] = Next(part, slot + 1);
  }
  return input;
}

VariableStore::AverageMove VariableStore::MoveAverage(size_t part) {
  const size_t average = num_tensors(part) - 1;
  const int current = static_cast<int>(record().current_buffer);
  return {Tensor(part, 0, current), Tensor(part, average, NextBuffer()),
          Tensor(part, average, current)};
}

void VariableStore::CarryOver(size_t part) {
  if (in_place()) return;
  if (is_logged(part)) {
    Log(part).Clear();
    return;
  }
  const size_t averages = settings_[this->part(part).variable].averaged ? 1 : 0;
  for (size_t tensor = 0; tensor + averages < num_tensors(part); ++tensor) {
    const absl::Span<const std::byte> from = Committed(part, tensor);
    std::memcpy(Next(part, tensor).data(), from.data(), from.size());
  }
}

absl::StatusOr<size_t> VariableStore::FindTensor(size_t part,
                                                 absl::string_view name) const {
  if (part < num_parts()) {
    const std::string& variable = variables_[this->part(part).variable].name;
    if (name == variable) return 0;
    const std::vector<SlotSpec>& slots = slots_[this->part(part).variable];
    for (size_t i = 0; i < slots.size(); ++i) {
      if (name == TensorNameOf(variable, slots[i].name)) return i + 1;
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
  if (part >= num_parts()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "part ", part, ": this server has ", num_parts(), " parts"));
  }
  if (tensor >= num_tensors(part)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor, ": part ", part, " has ", num_tensors(part)));
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

absl::Status VariableStore::Activate(int64_t step,
                                     const AllAdamPowers& powers) {
  if (step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("global step ", step, " must be at least 0"));
  }
  if (is_active() && step == committed_step()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckNotActive("activate"));
  StepRecord next = record();
  next.committed_step = step;
  next.opened_step = step;
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
  next.powers[NextBuffer()] = NextPowers();
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
    next.powers[0] = NextPowers();
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

void VariableStore::SetSettings(const RunSettings& settings) {
  StepRecord next = record();
  next.settings_revision = settings.revision;
  next.replicas_to_aggregate = settings.replicas_to_aggregate;
  next.learning_rate_scale = settings.learning_rate_scale;
  next.paused = settings.paused ? 1 : 0;
  next.workers = {};
  for (int worker : settings.workers) {
    next.workers[worker / 64] |= uint64_t{1} << (worker % 64);
  }
  if (next != record()) file_->WriteRecord(next);
}

RunSettings VariableStore::settings() const {
  static_assert(RunSettings::kMaxWorkers == 64 * StepRecord().workers.size());
  const StepRecord& now = record();
  RunSettings settings;
  settings.revision = now.settings_revision;
  settings.replicas_to_aggregate = static_cast<int>(now.replicas_to_aggregate);
  settings.learning_rate_scale = now.learning_rate_scale;
  settings.paused = now.paused != 0;
  for (int worker = 0; worker < RunSettings::kMaxWorkers; ++worker) {
    if ((now.workers[worker / 64] >> (worker % 64) & 1) != 0) {
      settings.workers.push_back(worker);
    }
  }
  return settings;
}

}  // namespace lockstep
