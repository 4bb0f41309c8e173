#include "server/state/variable_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/numeric/parallel_blocks.h"
#include "server/state/init/initializer.h"
#include "server/update/slots.h"

namespace lockstep::server {
namespace {

// Bytes that are written between two reports of progress: so few that a stop is
// noticed at once.
constexpr size_t kRange = size_t{4} << 20;

absl::Status CheckPart(const std::vector<VariableSpec>& variables, size_t index,
                       const PartSpec& part) {
  const auto count = static_cast<int64_t>(variables.size());
  if (part.variable < 0 || part.variable >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", index, " is of variable ", part.variable,
                     "; the model has ", count));
  }
  const VariableSpec& variable = variables[part.variable];
  // Model and plan come in one message, and must fit each other.
  const int64_t elements = NumElements(variable.shape);
  const int64_t width = variable.is_table() ? RowWidth(variable.shape) : 0;
  if (part.dtype != variable.dtype || part.row_width != width ||
      part.grows != variable.grows() ||
      !IsPartOf(variable, {.offset = part.offset,
                           .count = part.count,
                           .row_stride = part.row_stride})) {
    return absl::InvalidArgumentError(absl::StrCat(
        "part ", index, " (", std::string(DTypeName(part.dtype)), ", offset ",
        part.offset, ", count ", part.count, ") is no slice of variable ",
        variable.name, " (", std::string(DTypeName(variable.dtype)), ", ",
        elements, " elements)"));
  }
  return absl::OkStatus();
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
    // A growing table needs a log: a new row is made in one buffer, and a table
    // with two would miss it after the next commit.
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

VariableStore::VariableStore(const Options& options, StateLayout layout,
                             std::unique_ptr<StateFile> file)
    : progress_(options.progress),
      tensors_(options.variables, options.optimizers, options.settings,
               std::move(layout), std::move(file)),
      tables_(tensors_) {}

absl::Status VariableStore::CheckOptions(const Options& options) {
  return MakeLayout(options).status();
}

absl::StatusOr<std::unique_ptr<VariableStore>> VariableStore::Create(
    const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateLayout layout, MakeLayout(options));
  StepRecord record;
  record.incarnation = options.incarnation;
  if (options.progress != nullptr) {
    // With the bytes of Initialize(), which follows: the progress that a
    // waiting chief sees must not end twice.
    options.progress->Expect(layout.file_size() + BytesToInitialize(layout));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<StateFile> file,
      StateFile::Create(options.directory, MakeHeader(options, layout), record,
                        options.progress.get()));
  std::unique_ptr<VariableStore> store(
      new VariableStore(options, std::move(layout), std::move(file)));
  LOCKSTEP_RETURN_IF_ERROR(store->tables_.Open());
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
  LOCKSTEP_RETURN_IF_ERROR(store->tables_.Open());
  if (options.progress != nullptr && !store->is_active()) {
    options.progress->Expect(BytesToInitialize(store->tensors_.layout()));
  }
  StepRecord record = store->record();
  record.incarnation = options.incarnation;
  store->tensors_.file().WriteRecord(record);
  // The process before may have been killed between a commit and the copies of
  // its rows.
  if (store->is_active()) store->tables_.ApplyLogs();
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
  for (size_t i = 0; i < tensors_.optimizers().size(); ++i) {
    next[i] = NextAdamPowers(tensors_.optimizers()[i], committed_powers()[i]);
  }
  return next;
}

ApplyInput VariableStore::Update(size_t part) {
  ApplyInput input;
  input.dtype = tensors_.part(part).dtype;
  const int optimizer = tensors_.settings(part).optimizer;
  input.powers = committed_powers()[optimizer];
  input.updates = tensors_.Updates(part);
  input.decays = tensors_.settings(part).decays;
  input.old_value = Committed(part, 0);
  input.new_value = Next(part, 0);
  for (size_t slot = 0; slot < NumSlots(tensors_.optimizers()[optimizer]);
       ++slot) {
    input.old_slots[slot] = Committed(part, slot + 1);
    input.new_slots[slot] = Next(part, slot + 1);
  }
  return input;
}

VariableStore::AverageMove VariableStore::MoveAverage(size_t part) {
  // The buffers are those of the record: a part with an average is never
  // logged.
  const size_t average = tensors_.num_tensors(part) - 1;
  const int current = static_cast<int>(record().current_buffer);
  return {tensors_.Tensor(part, 0, current),
          tensors_.Tensor(part, average, tensors_.NextBuffer()),
          tensors_.Tensor(part, average, current)};
}

void VariableStore::CarryOver(size_t part) {
  // The next tensors are the committed ones.
  if (in_place()) return;
  tensors_.SetNextUpdates(part, tensors_.Updates(part));
  if (is_logged(part)) {
    tables_.SkipRows(part);
    return;
  }
  // The average, which is the last tensor, has a move of its own.
  const size_t averages = tensors_.settings(part).averaged ? 1 : 0;
  for (size_t tensor = 0; tensor + averages < tensors_.num_tensors(part);
       ++tensor) {
    const absl::Span<const std::byte> from = Committed(part, tensor);
    std::memcpy(Next(part, tensor).data(), from.data(), from.size());
  }
}

absl::Status VariableStore::WriteStretch(size_t part, size_t tensor,
                                         size_t first,
                                         absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(
      tensors_.CheckRange(part, tensor, first, bytes.size()));
  LOCKSTEP_RETURN_IF_ERROR(tensors_.CheckNotActive("overwrite"));
  const int buffer = static_cast<int>(record().current_buffer);
  std::memcpy(tensors_.Tensor(part, tensor, buffer).data() + first,
              bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status VariableStore::FillPart(size_t i, const InitialValues& values,
                                     absl::Span<std::byte> out) {
  // The rows of a part may be interleaved with those of other parts.
  const bool apart = tensors_.part(i).row_stride != 1;
  const size_t element = ElementSize(tensors_.part(i).dtype);
  const size_t range = apart ? tensors_.RowSize(i) : kRange;
  const int64_t from_one_to_the_next =
      apart ? tensors_.part(i).row_stride * tensors_.part(i).row_width
            : static_cast<int64_t>(range / element);
  int64_t offset = tensors_.part(i).offset;
  size_t told = 0;
  for (size_t first = 0; first < out.size(); first += range) {
    const size_t size = std::min(range, out.size() - first);
    LOCKSTEP_RETURN_IF_ERROR(values.Fill(offset, out.subspan(first, size)));
    offset += from_one_to_the_next;
    // Rows are short, so several of them make one report.
    if (first + size - told < kRange && first + size < out.size()) continue;
    LOCKSTEP_RETURN_IF_ERROR(Advance(first + size - told));
    told = first + size;
  }
  return absl::OkStatus();
}

absl::Status VariableStore::Initialize(uint64_t seed) {
  LOCKSTEP_RETURN_IF_ERROR(tensors_.CheckNotActive("initialise"));
  // Blocks of elements, since parts differ in size by orders of magnitude.
  std::vector<size_t> first_elements;
  size_t elements = 0;
  for (size_t i = 0; i < num_parts(); ++i) {
    first_elements.push_back(elements);
    elements += static_cast<size_t>(tensors_.part(i).count);
  }
  // A part is filled by the block that has its first element, so blocks never
  // share a part.
  const auto part_at = [&](size_t element) {
    return static_cast<size_t>(absl::c_lower_bound(first_elements, element) -
                               first_elements.begin());
  };
  Mutex mutex;
  absl::Status status;
  ForEachBlock(elements, [&](size_t first, size_t count) {
    const absl::Status filled =
        InitializeParts(part_at(first), part_at(first + count), seed);
    MutexLock lock(mutex);
    status.Update(filled);
  });
  return status;
}

absl::Status VariableStore::InitializeParts(size_t first, size_t end,
                                            uint64_t seed) {
  std::optional<InitialValues> values;  // of the previous part's variable
  for (size_t i = first; i < end; ++i) {
    // Made once for all parts of a variable in this block: an orthogonal matrix
    // is expensive.
    if (i == first ||
        tensors_.part(i).variable != tensors_.part(i - 1).variable) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          values, InitialValues::Make(tensors_.variable(i), seed));
    }
    LOCKSTEP_RETURN_IF_ERROR(InitializePart(i, *values));
  }
  return absl::OkStatus();
}

absl::Status VariableStore::InitializePart(size_t i,
                                           const InitialValues& values) {
  const int buffer = static_cast<int>(record().current_buffer);
  tensors_.SetUpdates(i, 0);
  if (tables_.Clear(i)) {  // its rows get values when they are created
    LOCKSTEP_RETURN_IF_ERROR(Advance(tensors_.layout().TensorSize(i)));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(
        FillPart(i, values, tensors_.Tensor(i, 0, buffer)));
  }
  const std::vector<SlotSpec>& slots = tensors_.slots(i);
  for (size_t tensor = 1; tensor < tensors_.num_tensors(i); ++tensor) {
    const SlotSpec& slot = slots[tensor - 1];
    const absl::Span<std::byte> to = tensors_.Tensor(i, tensor, buffer);
    FillElements(tensors_.part(i).dtype, slot.initial_value, to);
    if (slot.starts_as_value) {
      std::memcpy(to.data(), tensors_.Tensor(i, 0, buffer).data(), to.size());
    }
    LOCKSTEP_RETURN_IF_ERROR(Advance(to.size()));
  }
  return absl::OkStatus();
}

absl::Status VariableStore::SetUpdates(size_t part, int64_t updates) {
  LOCKSTEP_RETURN_IF_ERROR(tensors_.CheckNotActive("count the updates of"));
  tensors_.SetUpdates(part, updates);
  return absl::OkStatus();
}

absl::Status VariableStore::Activate(int64_t step,
                                     const AllAdamPowers& powers) {
  if (step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("global step ", step, " must be at least 0"));
  }
  // A repeated call.
  if (is_active() && step == committed_step()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(tensors_.CheckNotActive("activate"));
  StepRecord next = record();
  next.committed_step = step;
  next.opened_step = step;
  next.powers[next.current_buffer] = powers;
  tensors_.file().WriteRecord(next);
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
  // The powers of the committed step stay in the other place: the commit
  // switches them with the buffers.
  next.powers[tensors_.NextBuffer()] = NextPowers();
  tensors_.file().WriteRecord(next);
  return absl::OkStatus();
}

void VariableStore::DropPrepared() {
  if (record().prepared_step == StepRecord::kNone) return;
  StepRecord next = record();
  next.prepared_step = StepRecord::kNone;
  tensors_.file().WriteRecord(next);
}

absl::Status VariableStore::CheckCommit(int64_t step) const {
  if (is_active() && step == committed_step()) return absl::OkStatus();
  const bool is_ready = in_place() ? is_active() && step == committed_step() + 1
                                   : step == record().prepared_step;
  if (is_ready && step >= 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot commit step ", step, " after step ", committed_step(), ": step ",
      record().prepared_step, " is prepared (-1: none)"));
}

absl::Status VariableStore::Commit(int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(CheckCommit(step));
  if (is_active() && step == committed_step()) return absl::OkStatus();
  StepRecord next = record();
  next.committed_step = step;
  next.prepared_step = StepRecord::kNone;
  // The record below is the commit of all parts at once. A process that is
  // killed after it copies the rows of logs when it is opened again.
  next.current_buffer = static_cast<uint32_t>(tensors_.NextBuffer());
  // In place both buffers are one, so the powers move at the commit.
  if (in_place()) {
    next.powers[0] = NextPowers();
  }
  tensors_.file().WriteRecord(next);
  tables_.ApplyLogs();
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
  tensors_.file().WriteRecord(next);
  return absl::OkStatus();
}

void VariableStore::OpenWith(const RunSettings& settings) {
  StepRecord next = record();
  next.settings_revision = settings.revision;
  next.replicas_to_aggregate = settings.replicas_to_aggregate;
  next.learning_rate_scale = settings.learning_rate_scale;
  next.paused = settings.paused ? 1 : 0;
  next.workers = {};
  for (int worker : settings.workers) {
    next.workers[worker / 64] |= uint64_t{1} << (worker % 64);
  }
  next.opened_epoch = next.epoch;
  // Activate() is repeated with the same settings, and need not write the
  // record.
  if (next != record()) tensors_.file().WriteRecord(next);
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

}  // namespace lockstep::server
