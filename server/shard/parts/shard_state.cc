#include "server/shard/parts/shard_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job/work_checks.h"
#include "common/memory/usable_memory.h"
#include "server/shard/parts/share_memory.h"
#include "server/update/mean_norm.h"
#include "server/update/projection.h"

namespace lockstep::server {
namespace {

// Scalars are float32, which holds all integers up to this one. After so many
// updates the bias corrections are 1.
constexpr int64_t kMostUpdates = int64_t{1} << 24;

absl::StatusOr<int64_t> ToUpdates(float scalar) {
  if (scalar >= 0 && scalar <= static_cast<float>(kMostUpdates)) {
    return static_cast<int64_t>(scalar);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("scalars: the updates of a variable are ", scalar,
                   "; they must be from 0 to ", kMostUpdates));
}

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
  store.optimizers = OptimizersOf(options.job, options.variables);
  store.settings = settings;
  // Compatible mode updates parts as soon as their own gradients are in, as
  // TensorFlow does, so there is no step to be kept whole.
  store.in_place = options.job.mode == SyncMode::kCompatible;
  store.progress = options.progress;
  return store;
}

// The job's settings of each variable, if each part can follow them.
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
  const std::string why = WhyNoSharedMemory(options.job);
  if (!why.empty()) return absl::UnavailableError(why);
  return WriteCounters::Create(2 * static_cast<int>(options.parts.size()));
}

// Shared with the other mirrors of this host if there may be some.
std::unique_ptr<MeanMemory> MakeMeans(const ShardState::Options& options) {
  std::vector<size_t> sizes;
  bool any = false;
  for (const PartSpec& part : options.parts) {
    // The mean of a table has a size of its own in each step, and is sent;
    // those of other parts are another server's.
    const bool own = part.reducer < 0 && !part.is_table();
    sizes.push_back(own ? MeanSize(part.dtype, part.count) : 0);
    any = any || own;
  }
  if (!options.shared_memory || !any ||
      options.job.strategy.kind != StrategyKind::kMultiWorkerMirrored) {
    return std::make_unique<MeanMemory>();
  }
  absl::StatusOr<std::unique_ptr<MeanMemory>> means =
      MeanMemory::MakeShared(sizes);
  if (means.ok()) return *std::move(means);
  spdlog::warn("shares no means with other servers of this host: {}",
               std::string(means.status().message()));
  return std::make_unique<MeanMemory>();
}

}  // namespace

absl::Status ShardState::CheckOptions(const Options& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSharesFit(options.job, options.parts,
                                          UsableMemory::OfThisProcess().bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<VariableSettings> settings,
                            CheckedSettings(options));
  return options.parts.empty()
             ? absl::OkStatus()
             : VariableStore::CheckOptions(StoreOptions(options, settings));
}

absl::StatusOr<std::unique_ptr<ShardState>> ShardState::Create(
    const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<VariableSettings> settings,
                            CheckedSettings(options));
  std::unique_ptr<VariableStore> store;
  if (!options.parts.empty()) {
    const VariableStore::Options store_options =
        StoreOptions(options, settings);
    // A file of an earlier process may have another layout, so it is not
    // reused.
    LOCKSTEP_RETURN_IF_ERROR(VariableStore::Discard(store_options));
    LOCKSTEP_ASSIGN_OR_RETURN(store, VariableStore::Create(store_options));
    if (absl::Status status = store->Initialize(options.job.seed);
        !status.ok()) {
      // The error of Initialize() matters; a later Create() replaces the file.
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
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<VariableSettings> settings,
                            CheckedSettings(options));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<VariableStore> store,
      VariableStore::Open(StoreOptions(options, settings)));
  // The process was killed before Activate(): values may be missing, or partly
  // those of a checkpoint.
  if (!store->is_active()) {
    LOCKSTEP_RETURN_IF_ERROR(store->Initialize(options.job.seed));
  }
  return std::unique_ptr<ShardState>(
      new ShardState(options, std::move(settings), std::move(store)));
}

ShardState::ShardState(const Options& options,
                       std::vector<VariableSettings> settings,
                       std::shared_ptr<VariableStore> store)
    : parts_(options.job, options.variables, options.parts, std::move(settings),
             std::move(store)),
      values_(parts_, options.returned_parts,
              MakeCounters(options, parts_.store.get())),
      updates_(parts_, values_, SpanRecorder::Of(SpanRecorder::Role::kServer),
               MakeMeans(options)) {}

std::vector<std::vector<std::string>> ShardState::SlotNames() const {
  std::vector<std::vector<std::string>> names;
  for (const std::vector<SlotSpec>& slots : parts_.slots) {
    names.emplace_back();
    for (const SlotSpec& slot : slots) names.back().push_back(slot.name);
  }
  return names;
}

std::vector<std::string> ShardState::ScalarNames() const {
  std::vector<std::string> names;
  for (const OptimizerConfig& optimizer : parts_.optimizers) {
    if (!HasAdamPowers(optimizer)) continue;
    // Every Adam before this one has added two names.
    const std::string suffix =
        names.empty() ? "" : absl::StrCat("_", names.size() / 2);
    names.push_back("beta1_power" + suffix);
    names.push_back("beta2_power" + suffix);
  }
  for (const int variable : CountedVariables()) {
    names.push_back(
        TensorNameOf(parts_.variables[variable].name, kUpdatesName));
  }
  return names;
}

std::vector<int> ShardState::CountedVariables() const {
  std::vector<int> counted;
  for (size_t i = 0; i < parts_.variables.size(); ++i) {
    if (CountsUpdates(parts_.optimizers[parts_.settings[i].optimizer])) {
      counted.push_back(static_cast<int>(i));
    }
  }
  return counted;
}

absl::StatusOr<ShardState::OptimizerNumbers> ShardState::FromScalars(
    const std::vector<float>& scalars) const {
  const size_t count = ScalarNames().size();
  if (!scalars.empty() && scalars.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "scalars: ", scalars.size(), " given; the optimizers have ", count));
  }
  // In the order of ScalarNames(): first the powers of all optimizers, then the
  // updates of the variables.
  OptimizerNumbers numbers;
  size_t next = 0;
  for (size_t i = 0; i < parts_.optimizers.size(); ++i) {
    numbers.powers[i] = InitialAdamPowers(parts_.optimizers[i]);
    if (scalars.empty() || !HasAdamPowers(parts_.optimizers[i])) continue;
    numbers.powers[i] = {scalars[next], scalars[next + 1]};
    next += 2;
  }
  numbers.updates.resize(parts_.variables.size(), 0);
  if (scalars.empty()) return numbers;
  for (const int variable : CountedVariables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(numbers.updates[variable],
                              ToUpdates(scalars[next++]));
  }
  return numbers;
}

absl::Status ShardState::CheckOpening(int64_t step,
                                      const std::vector<float>& scalars) const {
  {
    MutexLock lock(parts_.record_mutex);
    if (parts_.store != nullptr && parts_.store->is_active()) {
      return parts_.store->CheckCommit(step);
    }
  }
  return FromScalars(scalars).status();
}

absl::Status ShardState::Activate(int64_t step,
                                  const std::vector<float>& scalars) {
  LOCKSTEP_ASSIGN_OR_RETURN(const OptimizerNumbers numbers,
                            FromScalars(scalars));
  MutexLock lock(parts_.record_mutex);
  if (parts_.store == nullptr) return absl::OkStatus();
  // A repeated call changes nothing, and SetUpdates() would refuse it.
  if (parts_.store->is_active()) {
    return parts_.store->Activate(step, numbers.powers);
  }
  for (int part = 0; part < num_parts(); ++part) {
    LOCKSTEP_RETURN_IF_ERROR(parts_.store->SetUpdates(
        part, numbers.updates[parts_.parts[part].variable]));
  }
  return parts_.store->Activate(step, numbers.powers);
}

absl::Status ShardState::Resume(int64_t step) {
  MutexLock lock(parts_.record_mutex);
  if (parts_.store == nullptr) return absl::OkStatus();
  // No effect if the step is committed already.
  LOCKSTEP_RETURN_IF_ERROR(parts_.store->Commit(step));
  parts_.store->DropPrepared();
  return absl::OkStatus();
}

StepRecord ShardState::record() const {
  MutexLock lock(parts_.record_mutex);
  return parts_.store == nullptr ? StepRecord() : parts_.store->record();
}

void ShardState::OpenWith(const RunSettings& settings) {
  MutexLock lock(parts_.record_mutex);
  if (parts_.store != nullptr) parts_.store->OpenWith(settings);
}

RunSettings ShardState::settings() const {
  MutexLock lock(parts_.record_mutex);
  return parts_.store == nullptr ? RunSettings() : parts_.store->settings();
}

absl::Status ShardState::Write(int part, int tensor, size_t first,
                               absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(parts_.Check(part));
  if (parts_.parts[part].grows) {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", part, " grows; name the keys of its rows"));
  }
  MutexLock part_lock(parts_.part_mutexes[part]);
  MutexLock lock(parts_.record_mutex);
  written_ = true;
  return parts_.store->WriteStretch(part, tensor, first, bytes);
}

absl::Status ShardState::WriteRows(int part, int tensor,
                                   absl::Span<const int64_t> keys,
                                   absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(parts_.Check(part));
  MutexLock part_lock(parts_.part_mutexes[part]);
  MutexLock lock(parts_.record_mutex);
  if (tensor < 0) {
    // Checked here, because the store takes an unsigned number.
    return absl::InvalidArgumentError(absl::StrCat("tensor is ", tensor));
  }
  written_ = true;
  return parts_.store->tables().WriteRows(part, tensor, keys, parts_.job.seed,
                                          bytes);
}

std::vector<float> ShardState::Scalars() const {
  MutexLock lock(parts_.record_mutex);
  if (parts_.store == nullptr) return {};
  std::vector<float> scalars;
  for (size_t i = 0; i < parts_.optimizers.size(); ++i) {
    if (!HasAdamPowers(parts_.optimizers[i])) continue;
    const AdamPowers& powers = parts_.store->committed_powers()[i];
    scalars.push_back(powers.beta1_power);
    scalars.push_back(powers.beta2_power);
  }
  std::vector<int64_t> updates(parts_.variables.size(), 0);
  for (int part = 0; part < num_parts(); ++part) {
    // All parts of a variable have the same number.
    updates[parts_.parts[part].variable] = parts_.store->Updates(part);
  }
  for (const int variable : CountedVariables()) {
    scalars.push_back(
        static_cast<float>(std::min(updates[variable], kMostUpdates)));
  }
  return scalars;
}

absl::Status ShardState::SetEpoch(uint64_t epoch) {
  MutexLock lock(parts_.record_mutex);
  return parts_.store == nullptr ? absl::OkStatus()
                                 : parts_.store->SetEpoch(epoch);
}

absl::Status ShardState::Remove() {
  MutexLock lock(parts_.record_mutex);
  return parts_.store == nullptr ? absl::OkStatus() : parts_.store->Remove();
}

}  // namespace lockstep::server
