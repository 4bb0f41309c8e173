#include "server/shard/shard_state.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job/learning_rate.h"
#include "server/shard/row_gradients.h"
#include "server/update/moving_average.h"
#include "server/update/projection.h"
#include "server/update/slots.h"
#include "server/update/update_kernels.h"

namespace lockstep {
namespace {

VariableStore::Options StoreOptions(
    const ShardState::Options& options,
    const std::vector<VariableSettings>& settings) {
  VariableStore::Options store;
  store.directory = options.state_dir;
  store.job_id = options.job_id;
  store.task_index = options.task_index;
  store.incarnation = options.incarnation;
  store.variables = options.variables;
  store.parts = options.parts;
  store.optimizers = OptimizersOf(options.job);
  store.settings = settings;
  store.in_place = options.job.mode == SyncMode::kCompatible;
  store.progress = options.progress;
  return store;
}

template <typename T>
std::vector<T> MakeAll(const JobConfig& job) {
  std::vector<T> optimizers;
  for (const OptimizerConfig& config : OptimizersOf(job)) {
    optimizers.emplace_back(config);
  }
  return optimizers;
}

// What the job says of each variable, if each part can follow it.
absl::StatusOr<std::vector<VariableSettings>> CheckedSettings(
    const ShardState::Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<VariableSettings> settings,
                            SettingsOf(options.job, options.variables));
  for (const PartSpec& part : options.parts) {
    const auto variable = static_cast<size_t>(part.variable);
    if (variable >= settings.size()) continue;  // the store refuses it
    LOCKSTEP_RETURN_IF_ERROR(CheckProjection(settings[variable].constraint,
                                             options.variables[variable],
                                             part.offset, part.count));
  }
  return settings;
}

using AllFiniteKernel = bool (*)(size_t count, const std::byte* elements);

AllFiniteKernel KernelFor(DType dtype, GradientType type) {
  if (type == GradientType::kBFloat16 || dtype == DType::kBFloat16) {
    return AllFiniteBFloat16;
  }
  if (dtype == DType::kFloat16) return AllFiniteFloat16;
  return dtype == DType::kFloat64 ? AllFiniteDouble : AllFiniteFloat;
}

absl::StatusOr<std::unique_ptr<WriteCounters>> MakeCounters(
    const ShardState::Options& options, const VariableStore* store) {
  if (!options.shared_memory) {
    return absl::UnavailableError("this server has --shared_memory=off");
  }
  if (options.state_dir.empty()) {
    return absl::UnavailableError("this server keeps state in its own memory");
  }
  if (store == nullptr) {
    return absl::UnavailableError("this server has no variables");
  }
  if (store->in_place()) {
    return absl::UnavailableError("compatible mode updates in place");
  }
  if (options.job.total_num_replicas < options.job.replicas_to_aggregate) {
    return absl::UnavailableError(
        "a worker's next share of a step would overwrite the gradients of the "
        "one before, which a server still reads");
  }
  return WriteCounters::Create(2 * static_cast<int>(options.parts.size()));
}

// Units: `element` counts bytes.
bool AllFinite(AllFiniteKernel kernel, size_t element, GradientReader reader,
               size_t elements) {
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

absl::Status ShardState::CheckOptions(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Settings settings, CheckedSettings(options));
  return options.parts.empty()
             ? absl::OkStatus()
             : VariableStore::CheckOptions(StoreOptions(options, settings));
}

absl::StatusOr<std::unique_ptr<ShardState>> ShardState::Create(
    const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(Settings settings, CheckedSettings(options));
  std::unique_ptr<VariableStore> store;
  if (!options.parts.empty()) {
    const VariableStore::Options store_options =
        StoreOptions(options, settings);
    LOCKSTEP_RETURN_IF_ERROR(VariableStore::Discard(store_options));
    LOCKSTEP_ASSIGN_OR_RETURN(store, VariableStore::Create(store_options));
    if (absl::Status status = store->Initialize(options.job.seed);
        !status.ok()) {
      store->Remove().IgnoreError();
      return status;
    }
  }
  return std::unique_ptr<ShardState>(
      new ShardState(options, std::move(settings), std::move(store)));
}

absl::StatusOr<std::unique_ptr<ShardState>> ShardState::Open(
    const Options& options) {
  if (options.parts.empty()) {
    return absl::NotFoundError("a server without parts leaves no state");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Settings settings, CheckedSettings(options));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<VariableStore> store,
      VariableStore::Open(StoreOptions(options, settings)));
  if (!store->is_active()) {
    LOCKSTEP_RETURN_IF_ERROR(store->Initialize(options.job.seed));
  }
  return std::unique_ptr<ShardState>(
      new ShardState(options, std::move(settings), std::move(store)));
}

ShardState::ShardState(const Options& options, Settings settings,
                       std::shared_ptr<VariableStore> store)
    : job_(options.job),
      parts_(options.parts),
      variables_(options.variables),
      settings_(std::move(settings)),
      optimizers_(MakeAll<Optimizer>(options.job)),
      sparse_optimizers_(MakeAll<SparseOptimizer>(options.job)),
      rates_(LearningRatesOf(options.job)),
      slots_(SlotsByVariable(OptimizersOf(options.job), settings_)),
      part_mutexes_(std::make_unique<Mutex[]>(options.parts.size())),
      store_(std::move(store)),
      averaged_step_(options.parts.size(), StepRecord::kNone),
      loans_(LoanBook::Create(2 * static_cast<int>(options.parts.size()),
                              [returned = options.returned_parts](int buffer) {
                                if (returned) returned->Push(buffer / 2);
                              })),
      counters_(MakeCounters(options, store_.get())) {}

size_t ShardState::part_size(int part) const {
  return parts_[part].count * ElementSize(parts_[part].dtype);
}

std::string ShardState::PartName(int part) const {
  return absl::StrCat("part ", part, " (\"",
                      variables_[parts_[part].variable].name, "\")");
}

absl::StatusOr<size_t> ShardState::GradientSize(int part,
                                                GradientType type) const {
  if (parts_[part].is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat(PartName(part), " is a table of ", parts_[part].num_rows(),
                     " rows; its gradients and its reads name rows"));
  }
  const absl::StatusOr<size_t> element =
      GradientElementSize(parts_[part].dtype, type);
  if (element.ok()) return parts_[part].count * *element;
  return absl::InvalidArgumentError(
      absl::StrCat(PartName(part), ": ", element.status().message()));
}

std::vector<std::vector<std::string>> ShardState::SlotNames() const {
  std::vector<std::vector<std::string>> names;
  for (const std::vector<SlotSpec>& slots : slots_) {
    names.emplace_back();
    for (const SlotSpec& slot : slots) names.back().push_back(slot.name);
  }
  return names;
}

std::vector<std::string> ShardState::ScalarNames() const {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : optimizers_) {
    if (!HasAdamPowers(optimizer.config())) continue;
    const std::string suffix =
        names.empty() ? "" : absl::StrCat("_", names.size() / 2);
    names.push_back("beta1_power" + suffix);
    names.push_back("beta2_power" + suffix);
  }
  return names;
}

absl::Status ShardState::MoveAverage(int part) {
  const PartSpec& spec = parts_[part];
  if (!settings_[spec.variable].averaged) return absl::OkStatus();
  VariableStore::AverageMove move;
  int64_t step = 0;
  {
    MutexLock lock(record_mutex_);
    step = store_->committed_step();
    if (step == store_->record().opened_step) return absl::OkStatus();
    if (store_->in_place() && step == averaged_step_[part]) {
      return absl::OkStatus();
    }
    move = store_->MoveAverage(part);
  }
  // What was committed meanwhile leaves these tensors alone: the part's lock is
  // held.
  std::optional<int64_t> updates;
  if (job_.moving_average.count_steps) updates = step;
  if (move.from.data() != move.to.data()) {
    std::memcpy(move.to.data(), move.from.data(), move.to.size());
  }
  averaged_step_[part] = step;
  return UpdateAverage(spec.dtype,
                       AverageFactor(job_.moving_average.decay, updates),
                       move.value, move.to);
}

absl::Status ShardState::MoveAverages() {
  for (int part = 0; part < num_parts(); ++part) {
    MutexLock part_lock(part_mutexes_[part]);
    LOCKSTEP_RETURN_IF_ERROR(MoveAverage(part));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ShardState::Update(
    int part, int64_t step, absl::Span<const PartGradient> gradients) {
  if (parts_[part].is_table()) {
    const SparseGradient mean = MeanOfRows(parts_[part], gradients);
    LOCKSTEP_RETURN_IF_ERROR(UpdateTable(part, step, mean));
    return true;  // rows were looked at before they were added up
  }
  std::vector<GradientSlices> slices;
  for (const PartGradient& gradient : gradients) {
    slices.push_back({gradient.slices, gradient.type});
  }
  const PartSpec& spec = parts_[part];
  const VariableSettings& settings = settings_[spec.variable];
  MutexLock part_lock(part_mutexes_[part]);
  LOCKSTEP_RETURN_IF_ERROR(MoveAverage(part));
  ApplyInput input;
  {
    MutexLock lock(record_mutex_);
    if (counters_.ok()) (*counters_)->Begin(NextBuffer(part));
    input = store_->Update(part);
    input.learning_rate = LearningRate(rates_[settings.optimizer], step) *
                          store_->record().learning_rate_scale;
  }
  input.gradients = slices;
  input.divisor = static_cast<int64_t>(slices.size());
  bool finite = true;
  if (job_.refuse_non_finite) input.mean_is_finite = &finite;
  LOCKSTEP_RETURN_IF_ERROR(optimizers_[settings.optimizer].Apply(input));
  Project(settings.constraint, spec.dtype,
          RowElements(variables_[spec.variable]), input.new_value);
  return finite;
}

int ShardState::CommittedBuffer(int part) const {
  return 2 * part + store_->record().current_buffer;
}

int ShardState::NextBuffer(int part) const {
  return 2 * part + 1 - store_->record().current_buffer;
}

bool ShardState::ClaimNext(int part) {
  MutexLock lock(record_mutex_);
  return store_->in_place() || loans_->Claim(NextBuffer(part));
}

LentBytes ShardState::LendNext(int part) {
  MutexLock lock(record_mutex_);
  return Lend(NextBuffer(part), store_->Next(part, 0));
}

LentBytes ShardState::Lend(int buffer,
                           absl::Span<const std::byte> value) const {
  LentBytes lent{value, loans_->Lend(buffer, store_)};
  if (counters_.ok()) {
    lent.place = {store_->OffsetOf(value), buffer, (*counters_)->Count(buffer)};
  }
  return lent;
}

absl::StatusOr<ShardState::Shared> ShardState::Share() const {
  if (!counters_.ok()) {
    return absl::FailedPreconditionError(counters_.status().message());
  }
  return Shared{store_->Share(), (*counters_)->file()};
}

LentBytes ShardState::LendCommitted(int part, int64_t& step) const {
  if (store_->in_place()) {
    auto copy = std::make_shared<std::vector<std::byte>>(part_size(part));
    MutexLock part_lock(part_mutexes_[part]);
    MutexLock lock(record_mutex_);
    const absl::Span<const std::byte> value = store_->Committed(part, 0);
    std::copy(value.begin(), value.end(), copy->begin());
    step = store_->committed_step();
    return {*copy, copy};
  }
  MutexLock lock(record_mutex_);
  step = store_->committed_step();
  return Lend(CommittedBuffer(part), store_->Committed(part, 0));
}

absl::Status ShardState::CheckFinite(int part,
                                     const PartGradient& gradient) const {
  PartSpec spec = parts_[part];
  if (spec.is_table()) {
    spec.count = gradient.rows->shape[0] * spec.row_width;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(size_t element,
                            GradientElementSize(spec.dtype, gradient.type));
  if (AllFinite(KernelFor(spec.dtype, gradient.type), element,
                GradientReader(gradient.slices), spec.count)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "gradient of part ", part, " (variable ", spec.variable, ", elements ",
      spec.offset, " to ", spec.offset + spec.count - 1,
      ") holds NaN or an infinity; lower the learning rate, or set "
      "refuse_non_finite: false"));
}

absl::Status ShardState::MarkPrepared(int64_t step, int64_t attempt) {
  MutexLock lock(record_mutex_);
  if (store_ == nullptr || store_->in_place()) return absl::OkStatus();
  return store_->MarkPrepared(step, attempt);
}

void ShardState::DropPrepared() {
  MutexLock lock(record_mutex_);
  if (store_ != nullptr && !store_->in_place()) store_->DropPrepared();
}

// Rows of tables are copied: nobody may read them meanwhile.
absl::Status ShardState::Commit(int64_t step) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<std::unique_ptr<MutexLock>> tables;
  for (int part = 0; part < num_parts(); ++part) {
    if (!parts_[part].is_table()) continue;
    tables.push_back(std::make_unique<MutexLock>(part_mutexes_[part]));
  }
  MutexLock lock(record_mutex_);
  if (store_ != nullptr) LOCKSTEP_RETURN_IF_ERROR(store_->Commit(step));
  SetLogStep(step);
  return absl::OkStatus();
}

absl::Status ShardState::Activate(int64_t step,
                                  const std::vector<float>& scalars) {
  const size_t count = ScalarNames().size();
  if (!scalars.empty() && scalars.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "scalars: ", scalars.size(), " given; the optimizers have ", count));
  }
  AllAdamPowers powers = {};
  size_t next = 0;
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    powers[i] = InitialAdamPowers(optimizers_[i].config());
    if (scalars.empty() || !HasAdamPowers(optimizers_[i].config())) continue;
    powers[i] = {scalars[next], scalars[next + 1]};
    next += 2;
  }
  MutexLock lock(record_mutex_);
  return store_ == nullptr ? absl::OkStatus() : store_->Activate(step, powers);
}

absl::Status ShardState::Resume(int64_t step) {
  MutexLock lock(record_mutex_);
  if (store_ == nullptr) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(store_->Commit(step));
  store_->DropPrepared();
  return absl::OkStatus();
}

StepRecord ShardState::record() const {
  MutexLock lock(record_mutex_);
  return store_ == nullptr ? StepRecord() : store_->record();
}

void ShardState::SetSettings(const RunSettings& settings) {
  MutexLock lock(record_mutex_);
  if (store_ != nullptr) store_->SetSettings(settings);
}

RunSettings ShardState::settings() const {
  MutexLock lock(record_mutex_);
  return store_ == nullptr ? RunSettings() : store_->settings();
}

absl::StatusOr<int64_t> ShardState::Read(int part, int tensor,
                                         absl::Span<std::byte> out) const {
  if (part < 0 || part >= num_parts() || tensor < 0 ||
      tensor >= num_tensors(part) || out.size() != part_size(part)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no part ", part, " with tensor ", tensor, " of ", out.size(),
        " bytes among the ", num_parts(), " parts of this server"));
  }
  MutexLock part_lock(part_mutexes_[part]);
  absl::Span<const std::byte> source;
  int64_t step = 0;
  {
    MutexLock lock(record_mutex_);
    source = store_->Committed(part, tensor);
    step = store_->committed_step();
  }
  // A commit meanwhile is harmless: this buffer is written again only after
  // the part's lock is free.
  std::memcpy(out.data(), source.data(), out.size());
  return step;
}

absl::Status ShardState::Write(int part, int tensor, size_t first,
                               absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPart(part));
  if (parts_[part].grows) {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", part, " grows; name the keys of its rows"));
  }
  MutexLock part_lock(part_mutexes_[part]);
  MutexLock lock(record_mutex_);
  return store_->WriteStretch(part, tensor, first, bytes);
}

absl::Status ShardState::CheckPart(int part) const {
  if (part >= 0 && part < num_parts()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "no part ", part, "; this server has ", num_parts(), " parts"));
}

std::vector<float> ShardState::Scalars() const {
  MutexLock lock(record_mutex_);
  if (store_ == nullptr) return {};
  std::vector<float> scalars;
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    if (!HasAdamPowers(optimizers_[i].config())) continue;
    const AdamPowers& powers = store_->committed_powers()[i];
    scalars.push_back(powers.beta1_power);
    scalars.push_back(powers.beta2_power);
  }
  return scalars;
}

absl::Status ShardState::SetEpoch(uint64_t epoch) {
  MutexLock lock(record_mutex_);
  return store_ == nullptr ? absl::OkStatus() : store_->SetEpoch(epoch);
}

absl::Status ShardState::Remove() {
  MutexLock lock(record_mutex_);
  return store_ == nullptr ? absl::OkStatus() : store_->Remove();
}

}  // namespace lockstep
