#include "server/shard/shard.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/number_tree.h"
#include "common/plan/shares.h"
#include "common/wire/epoch_bounds.h"
#include "server/step/compatible/compatible_engine.h"
#include "server/step/compatible/compatible_gate.h"
#include "server/step/strict/shared_gate.h"
#include "server/step/strict/strict_engine.h"
#include "server/step/strict/strict_gate.h"

namespace lockstep::server {
namespace {

// True if the server certainly has all elements of all variables. The size of a
// growing table says nothing: its parts have room for more rows than the table.
bool HasAllParts(const ShardState::Options& options) {
  std::vector<int64_t> elements(options.variables.size());
  for (const PartSpec& part : options.parts) {
    elements[part.variable] += part.count;
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    const VariableSpec& variable = options.variables[i];
    if (variable.grows() || elements[i] != NumElements(variable.shape)) {
      return false;
    }
  }
  return !options.parts.empty();
}

std::unique_ptr<Engine> MakeEngine(const ShardState::Options& options,
                                   ShardState& state, Gate* gate) {
  const JobConfig& job = options.job;
  if (job.mode == SyncMode::kStrict) {
    StrictEngine::Options strict;
    strict.replicas_to_aggregate = job.replicas_to_aggregate;
    strict.total_num_replicas = job.total_num_replicas;
    strict.shared = job.shares_work();
    strict.refuse_non_finite = job.refuse_non_finite;
    strict.gate = gate;
    strict.limit_mean = job.clipping.limits_mean();
    strict.has_all_parts = HasAllParts(options);
    if (job.strategy.kind == StrategyKind::kMultiWorkerMirrored) {
      for (const PartSpec& part : options.parts) {
        strict.copied.push_back(part.reducer >= 0);
      }
      // Wakes the thread that fetches the means of the next step.
      strict.on_commit = [queue = options.attempts] {
        if (queue != nullptr) queue->Push(0);
      };
    }
    return std::make_unique<StrictEngine>(strict, state.updates());
  }
  std::vector<CompatiblePart> parts;
  for (const PartSpec& part : state.parts()) {
    parts.push_back({part.dtype, part.is_table()
                                     ? std::optional(part.num_rows())
                                     : std::nullopt});
  }
  // Elsewhere ps task 0 cannot know whether the gradients of a pass have
  // reached the other servers: if the worker has died before, their parts need
  // another gradient, and the token must come back for it.
  std::function<void(const Pass&)> on_pass;
  if (gate != nullptr && HasAllParts(options)) {
    on_pass = [gate](const Pass& pass) { gate->FinishPass(pass); };
  }
  return std::make_unique<CompatibleEngine>(job.replicas_to_aggregate,
                                            std::move(parts), state.updates(),
                                            std::move(on_pass));
}

std::unique_ptr<Gate> MakeGate(const JobConfig& job) {
  if (job.shares_work()) {
    return std::make_unique<SharedGate>(SharedGate::Options{
        job.micro_batches_per_step, job.total_num_replicas,
        std::max(1, BlockSizeOf(job.micro_batches_per_step,
                                job.replicas_to_aggregate))});
  }
  if (job.mode == SyncMode::kStrict) {
    return std::make_unique<StrictGate>(
        StrictGate::Options{job.replicas_to_aggregate, job.total_num_replicas});
  }
  return std::make_unique<CompatibleGate>(CompatibleGate::Options{
      std::max(0, job.initial_tokens),  // fewer than none is none
      std::max(job.replicas_to_aggregate, job.total_num_replicas),
      job.total_num_replicas});
}

// The memory that workers share for each part. Tables have none: their
// gradients are single rows.
std::vector<SharedGradients::Part> SharedParts(const ShardState& state) {
  std::vector<SharedGradients::Part> parts;
  for (int part = 0; part < state.num_parts(); ++part) {
    const PartSpec& spec = state.parts()[part];
    parts.push_back(
        {spec.is_table() ? 0 : state.part_size(part), ElementSize(spec.dtype)});
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(
    const ShardState::Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ShardState> state,
                            ShardState::Create(options));
  return std::unique_ptr<Shard>(new Shard(options, std::move(state)));
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Open(
    const ShardState::Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ShardState> state,
                            ShardState::Open(options));
  return std::unique_ptr<Shard>(new Shard(options, std::move(state)));
}

Shard::Shard(const ShardState::Options& options,
             std::unique_ptr<ShardState> state)
    : job_(options.job),
      state_(std::move(state)),
      gate_(options.task_index == 0 ? MakeGate(job_) : nullptr),
      engine_(MakeEngine(options, *state_, gate_.get())),
      shared_gradients_(SharedParts(*state_)),
      settings_(state_->settings()) {}

int Shard::ReplicasOf(const RunSettings& settings) const {
  return settings.replicas_to_aggregate == 0 ? job_.replicas_to_aggregate
                                             : settings.replicas_to_aggregate;
}

int Shard::WorkersOf(const RunSettings& settings) const {
  return settings.workers.empty() ? job_.total_num_replicas
                                  : static_cast<int>(settings.workers.size());
}

RunSettings Shard::settings() const {
  MutexLock lock(mutex_);
  return settings_;
}

bool Shard::all_workers_count() const {
  const RunSettings now = settings();
  return job_.mode == SyncMode::kStrict && !job_.shares_work() &&
         ReplicasOf(now) == WorkersOf(now);
}

absl::Status Shard::CheckSettings(const RunSettings& settings) const {
  if (job_.mode == SyncMode::kCompatible) return absl::OkStatus();
  // The engine was made for one way of answering pushes, before or after the
  // update of their parts, and shares decide which.
  const bool shares = job_.total_num_replicas < job_.replicas_to_aggregate;
  const bool as_before =
      job_.shares_work()
          ? BlockSizeOf(job_.micro_batches_per_step, ReplicasOf(settings)) > 0
          : shares == (WorkersOf(settings) < ReplicasOf(settings));
  if (as_before) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "settings: ", ReplicasOf(settings), " gradients of ", WorkersOf(settings),
      " workers; how many shares of a step a worker has is the job file's"));
}

std::vector<Gate::Answer> Shard::Apply(const RunSettings& settings) {
  settings_ = settings;
  state_->OpenWith(settings);
  // The gate follows the engine: the tokens of the new settings may bring
  // pushes at once.
  engine_->SetReplicas(ReplicasOf(settings));
  if (gate_ == nullptr) return {};
  return gate_->SetReplicas(ReplicasOf(settings), settings.workers);
}

absl::Status Shard::CheckWorker(const TaskId& task, int slot) const {
  const RunSettings now = settings();
  const bool takes_part =
      now.workers.empty() ? task.index < job_.total_num_replicas
                          : std::binary_search(now.workers.begin(),
                                               now.workers.end(), task.index);
  // The job may have gone back to a step before the worker joined: it joins
  // again.
  if (task.type == TaskType::kWorker && !takes_part && job_.elastic_workers) {
    return absl::FailedPreconditionError(
        absl::StrCat(task.ToString(),
                     " takes no part in the job any more; "
                     "register again"));
  }
  if (task.type != TaskType::kWorker || !takes_part) {
    return absl::InvalidArgumentError(
        absl::StrCat(task.ToString(), " is none of the ", WorkersOf(now),
                     " workers of the job"));
  }
  int shares = 1;
  if (job_.shares_work()) {
    shares = job_.micro_batches_per_step;
  } else if (job_.mode == SyncMode::kStrict) {
    shares = SharesOf(task.index, ReplicasOf(now), WorkersOf(now));
  }
  if (slot >= 0 && slot < shares) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("slot is ", slot, "; ", task.ToString(), " has ", shares,
                   " shares of a step, from 0"));
}

bool Shard::CanCommitNext() const {
  // The engine commits only the attempt that it has prepared, and the record
  // has that attempt.
  return engine_->CheckCommit(engine_->step() + 1, state_->record().attempt)
      .ok();
}

Shard::Report Shard::GetReport() const {
  MutexLock lock(mutex_);
  Report report;
  report.active = active_;
  report.opened_epoch = state_->record().opened_epoch;
  if (active_) {
    report.committed_step = engine_->step();
    report.attempt = engine_->arrivals().attempt;
    if (CanCommitNext()) report.prepared_step = report.committed_step + 1;
  } else {
    const StepRecord record = state_->record();
    report.committed_step = record.committed_step;
    report.prepared_step = record.prepared_step;
  }
  return report;
}

absl::Status Shard::OpenAt(int64_t global_step,
                           const std::vector<float>& scalars) {
  if (state_->record().committed_step == StepRecord::kNone) {
    return state_->Activate(global_step, scalars);
  }
  return state_->Resume(global_step);
}

absl::Status Shard::CheckMove(int64_t global_step) const {
  const int64_t at = engine_->step();
  if (at == global_step) return absl::OkStatus();
  const bool prepared =
      CanCommitNext() || engine_->WaitsForCommit().has_value();
  if (gate_ == nullptr && at + 1 == global_step && prepared) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("Activate at step ", global_step,
                   " on a server that is open at step ", at));
}

absl::Status Shard::MoveTo(int64_t global_step) {
  // On ps task 0 a commit includes the gate, and only the chief orders it.
  if (gate_ == nullptr && engine_->step() + 1 == global_step) {
    engine_->LearnCommitted(global_step);
    // LearnCommitted() does nothing in compatible mode, and in strict mode it
    // drops the error of a commit: this call reports it.
    if (engine_->step() != global_step) {
      return engine_->Commit(global_step, state_->record().attempt).status();
    }
  }
  return CheckMove(global_step);
}

absl::Status Shard::CheckOpening(int64_t global_step,
                                 const std::vector<float>& scalars,
                                 int64_t attempt,
                                 const RunSettings& settings) const {
  if (global_step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("global_step is ", global_step, "; it must be >= 0"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckAttempt(attempt));
  LOCKSTEP_RETURN_IF_ERROR(CheckSettings(settings));
  return active_ ? CheckMove(global_step)
                 : state_->CheckOpening(global_step, scalars);
}

absl::Status Shard::CheckActivate(int64_t global_step,
                                  const std::vector<float>& scalars,
                                  int64_t attempt,
                                  const RunSettings& settings) const {
  MutexLock lock(mutex_);
  return CheckOpening(global_step, scalars, attempt, settings);
}

absl::StatusOr<Shard::Activated> Shard::Activate(
    int64_t global_step, const std::vector<float>& scalars, int64_t attempt,
    const RunSettings& settings) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckOpening(global_step, scalars, attempt, settings));
  Activated activated;
  if (active_) {
    LOCKSTEP_RETURN_IF_ERROR(MoveTo(global_step));
    // A chief that was about to end the job may have closed the tokens.
    if (gate_ != nullptr) gate_->Reopen();
    activated.tokens = Apply(settings);
  } else {
    LOCKSTEP_RETURN_IF_ERROR(OpenAt(global_step, scalars));
    // No answers are lost: no worker is admitted before the shard is active, so
    // none waits.
    Apply(settings);
    engine_->Activate(global_step);
    if (gate_ != nullptr) activated.tokens = gate_->Activate(global_step);
    active_ = true;
  }
  if (attempt != 0) {
    activated.answers = engine_->StartAttempt(global_step, attempt);
    if (gate_ != nullptr) {
      for (const Gate::Answer& answer : gate_->Redo(attempt)) {
        activated.tokens.push_back(answer);
      }
    }
  }
  // A mirror asks the others for means as soon as it is open.
  activated.answers.means_changed = true;
  return activated;
}

bool Shard::active() const {
  MutexLock lock(mutex_);
  return active_;
}

absl::StatusOr<size_t> Shard::SizeOf(int first_part, int num_parts) const {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPartRange(first_part, num_parts, state_->num_parts()));
  size_t size = 0;
  for (int part = first_part; part < first_part + num_parts; ++part) {
    size += state_->part_size(part);
  }
  return size;
}

absl::StatusOr<Shard::ByteRange> Shard::FindRange(int first_part, int num_parts,
                                                  int64_t first_element,
                                                  int64_t num_elements) const {
  LOCKSTEP_ASSIGN_OR_RETURN(size_t size, SizeOf(first_part, num_parts));
  if (first_element == 0 && num_elements == 0) {
    return ByteRange{first_part, num_parts, 0, size};
  }
  const PartSpec& part = state_->parts()[first_part];
  if (num_parts != 1 || first_element < 0 || num_elements < 1 ||
      num_elements > part.count || first_element > part.count - num_elements) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_elements, " elements from ", first_element, " on, of ",
                     num_parts, " parts; name one part, part ", first_part,
                     " has ", part.count, " elements"));
  }
  const size_t element = ElementSize(part.dtype);
  return ByteRange{first_part, 1, first_element * element,
                   num_elements * element};
}

absl::StatusOr<int64_t> Shard::PullRows(int part,
                                        absl::Span<const int64_t> rows,
                                        int64_t step,
                                        absl::Span<std::byte> out) {
  LOCKSTEP_RETURN_IF_ERROR(CheckReadable(step));
  const bool grows =
      part >= 0 && part < state_->num_parts() && state_->parts()[part].grows;
  return grows ? state_->values().ReadKeys(part, rows, out)
               : state_->values().ReadRows(part, rows, out);
}

absl::Status Shard::CheckReadable(int64_t step) const {
  if (!active()) {
    return absl::FailedPreconditionError(
        "the variables have no values yet; ask the chief for the plan first");
  }
  return engine_->CheckReached(step);
}

absl::StatusOr<std::vector<Gate::Answer>> Shard::AwaitToken(
    const TokenWait& wait, absl::Time now) {
  if (wait.computing) return gate_->Watch(wait.ticket, wait.pass, now);
  // The word of a worker does not make a number done whose gradient is not
  // here: no other worker would compute the number, and the step would wait for
  // ever.
  const bool pushed =
      !job_.shares_work() || engine_->HasGradientOf(wait.pass, wait.attempt);
  return gate_->Wait(wait.ticket, wait.pass, pushed ? wait.attempt : 0, now);
}

absl::StatusOr<Shard::Values> Shard::Pull(int first_part, int num_parts,
                                          int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(CheckReadable(step));
  LOCKSTEP_RETURN_IF_ERROR(SizeOf(first_part, num_parts).status());
  for (int part = first_part; part < first_part + num_parts; ++part) {
    LOCKSTEP_RETURN_IF_ERROR(
        state_->updates().GradientSize(part, GradientType::kVariable).status());
  }
  while (true) {
    Values values;
    bool one_step = true;
    for (int part = first_part; part < first_part + num_parts; ++part) {
      int64_t part_step = 0;
      values.parts.push_back(state_->values().LendCommitted(part, part_step));
      if (part == first_part) values.step = part_step;
      one_step = one_step && part_step == values.step;
    }
    // A step was committed between two parts. A commit is rare compared with
    // this loop, so the next try succeeds.
    if (one_step || job_.mode == SyncMode::kCompatible) return values;
  }
}

absl::StatusOr<int64_t> Shard::BeginSnapshot() {
  if (!active()) {
    return absl::FailedPreconditionError(
        "the variables have no values yet, so there is nothing to copy");
  }
  // The copy is made without the lock: it takes long, and the shard is in use.
  const auto progress = std::make_shared<FillProgress>();
  {
    MutexLock lock(mutex_);
    snapshot_progress_ = progress;
    if (snapshot_ != nullptr && snapshot_->step() == engine_->step()) {
      return snapshot_->step();
    }
    // Before the next copy is allocated: each is as large as the state.
    snapshot_.reset();
  }
  // Take() compares the step of every tensor with this one, so a commit from
  // here on fails the copy instead of mixing two steps, or copying averages
  // that were moved for another one.
  const int64_t step = engine_->step();
  LOCKSTEP_RETURN_IF_ERROR(engine_->CheckWhole(step));
  LOCKSTEP_RETURN_IF_ERROR(state_->updates().MoveAverages());
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const Snapshot> snapshot,
                            Snapshot::Take(*state_, step, *progress));
  // An update that began meanwhile may have changed what was copied.
  LOCKSTEP_RETURN_IF_ERROR(engine_->CheckWhole(step));
  MutexLock lock(mutex_);
  snapshot_ = snapshot;
  return snapshot->step();
}

std::shared_ptr<const FillProgress> Shard::snapshot_progress() const {
  MutexLock lock(mutex_);
  return snapshot_progress_;
}

absl::StatusOr<std::shared_ptr<const Snapshot>> Shard::snapshot() const {
  MutexLock lock(mutex_);
  if (snapshot_ != nullptr) return snapshot_;
  return absl::FailedPreconditionError("there is no snapshot; begin one");
}

void Shard::EndSnapshot() {
  MutexLock lock(mutex_);
  snapshot_.reset();
}

}  // namespace lockstep::server
