#include "worker/model_workload.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job/replicas.h"
#include "common/job/variable_settings.h"
#include "worker/data/data_root.h"
#include "worker/data/files/file_reading.h"
#include "worker/device/model_gradient_source.h"
#include "worker/local/local_steps_source.h"
#include "worker/models/zoo/registry.h"
#include "worker/replicas/replicated_gradient_source.h"
#include "worker/tables/model_kinds.h"
#include "worker/tables/table_gradient_source.h"

namespace lockstep::worker {
namespace {

Precision PrecisionOf(ComputePrecision precision) {
  switch (precision) {
    case ComputePrecision::kTf32:
      return Precision::kTf32;
    case ComputePrecision::kBfloat16:
      return Precision::kBfloat16;
    case ComputePrecision::kFloat32:
      break;
  }
  return Precision::kFloat32;
}

// Replicas draw different numbers, and the same ones after a restart. `replica`
// counts over all workers.
uint64_t PassKey(uint64_t seed, uint64_t replica) {
  return seed * 1'000'003 + replica;
}

// Tables are computed by one replica, however many GPUs there are.
absl::Status CheckTableReplicas(const JobConfig& job) {
  const int replicas = ReplicasPerWorker(job, /*gpus=*/0);
  if (replicas == 1) return absl::OkStatus();
  const bool are_named = !job.strategy.devices.empty();
  return absl::InvalidArgumentError(absl::StrCat(
      are_named ? "number of strategy.devices" : "strategy.replicas_per_worker",
      " is ", replicas, ", but model.kind is \"", job.model.kind,
      "\", whose tables are computed by one replica a worker: leave the "
      "field out, and start more workers"));
}

}  // namespace

ModelWorkload::ModelWorkload(int worker,
                             std::unique_ptr<ComputeBackend> backend,
                             std::vector<std::string> data_roots, int threads,
                             const Clock& clock)
    : worker_(worker),
      data_roots_(std::move(data_roots)),
      reading_(clock),
      backends_(std::move(backend), threads) {}

absl::Status ModelWorkload::LoadData(const JobConfig& job) {
  if (data_.has_value() || tables_ != nullptr) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckWorkerFiles(job, data_roots_));
  const FileReading::Scope reads(reading_);
  if (job.model.kind == kExternalModel) {
    return absl::InvalidArgumentError(
        "model.kind is \"external\": the workers of this job are programs of "
        "its user; start that program in place of `worker`, or name a model");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckModelKind(job.model.kind));
  if (HasTables(job.model)) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTableReplicas(job));
    LOCKSTEP_ASSIGN_OR_RETURN(tables_, MakeTableWorkload(job, Purpose::kTrain));
    spdlog::info("{} training examples", tables_->num_examples());
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(data_, LoadTrainingExamples(job.data));
  if (data_->empty_classes > 0) {
    spdlog::warn(
        "data.train_labels has labels up to {}, but no example of {} classes, "
        "the first of which is {}: check the labels, or set data.classes",
        data_->classes - 1, data_->empty_classes, data_->first_empty_class);
  }
  if (data_->tokens > 0) {
    spdlog::info("{} training examples of {} bytes", data_->count,
                 data_->tokens);
  } else {
    spdlog::info("{} training examples of {}x{}, {} classes", data_->count,
                 data_->height, data_->width, data_->classes);
  }
  return absl::OkStatus();
}

absl::Status ModelWorkload::Begin(const ChiefClient::Registration& membership) {
  // Before the memory of this membership is made: a host need not have room for
  // both.
  memory_ = nullptr;
  // A worker that registers again keeps its data, unless the chief has come
  // back with an edited job file.
  if (job_.data != membership.job.data ||
      job_.model.kind != membership.job.model.kind ||
      (tables_ != nullptr && job_.model != membership.job.model)) {
    models_.clear();
    tables_ = nullptr;
    data_.reset();
  }
  job_ = membership.job;
  LOCKSTEP_RETURN_IF_ERROR(LoadData(job_));
  if (tables_ != nullptr) job_.strategy.replicas_per_worker = 1;
  LOCKSTEP_RETURN_IF_ERROR(backends_.Open(job_));
  for (size_t r = 0; r < backends_.size(); ++r) {
    backends_[r].set_precision(PrecisionOf(job_.compute_precision));
  }
  // A new registration may come with another share of the data or other
  // replicas.
  models_.clear();
  schedules_.clear();
  for (int r = 0; r < replicas(); ++r) {
    if (tables_ == nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(models_.emplace_back(),
                                MakeModel(job_.model, InputOf(*data_)));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        BatchSchedule schedule,
        BatchSchedule::Create(
            ScheduleOf(job_, num_examples(),
                       // Replica r of this worker has the data of one worker
                       // among as many as there are replicas in the job.
                       int64_t{membership.data_shard} * replicas() + r,
                       int64_t{membership.num_workers} * replicas())));
    schedules_.push_back(std::move(schedule));
  }
  variables_ = tables_ == nullptr ? KeptVariables(*models_[0], job_.model)
                                  : tables_->variables();
  return absl::OkStatus();
}

std::optional<ExampleShape> ModelWorkload::examples() const {
  if (tables_ != nullptr) return std::nullopt;
  return ShapeOf(*data_);
}

absl::StatusOr<std::unique_ptr<GradientSource>> ModelWorkload::MakeSource(
    std::shared_ptr<ParameterMemory> memory) {
  // Kept here: the sources below only borrow it.
  memory_ = std::move(memory);
  if (tables_ != nullptr) {
    Fingerprint draws;
    draws.Add(job_.seed).Add(static_cast<uint64_t>(drawing_worker()));
    return std::make_unique<TableGradientSource>(*tables_, schedules_[0],
                                                 draws.value(), *memory_);
  }
  if (!job_.has_local_steps()) return BatchSourceOf(*memory_);
  LOCKSTEP_ASSIGN_OR_RETURN(LocalVariables made,
                            LocalVariables::Make(job_, variables_));
  auto local = std::make_unique<LocalVariables>(std::move(made));
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<GradientSource> source,
                            BatchSourceOf(local->memory()));
  // Replicas clip their gradients themselves.
  const ClippingConfig clipping =
      replicas() > 1 ? ClippingConfig{} : job_.clipping;
  LOCKSTEP_ASSIGN_OR_RETURN(const DType clipped,
                            ClippedType(clipping, variables_));
  return std::make_unique<LocalStepsSource>(std::move(source), std::move(local),
                                            *memory_, job_.local_steps,
                                            clipping, clipped);
}

absl::StatusOr<std::unique_ptr<GradientSource>> ModelWorkload::BatchSourceOf(
    const ParameterMemory& memory) {
  if (replicas() == 1) return SourceOf(0, memory);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<VariableSettings> settings,
                            SettingsOf(job_, variables_));
  // The gradient of a buffer is its change, which no limit applies to.
  std::vector<bool> clipped;
  for (size_t v = 0; v < variables_.size(); ++v) {
    clipped.push_back(settings[v].trained && !variables_[v].buffer);
  }
  std::vector<ReplicatedGradientSource::Replica> made;
  for (size_t r = 0; r < models_.size(); ++r) {
    // Replicas share the values, which they only read, but not the gradients.
    LOCKSTEP_ASSIGN_OR_RETURN(ParameterMemory own, memory.WithOwnGradients());
    auto& replica = made.emplace_back();
    replica.memory = std::make_unique<ParameterMemory>(std::move(own));
    replica.source = SourceOf(r, *replica.memory);
  }
  return std::make_unique<ReplicatedGradientSource>(
      std::move(made), job_.clipping, memory, clipped);
}

std::unique_ptr<GradientSource> ModelWorkload::SourceOf(
    size_t replica, const ParameterMemory& memory) {
  const uint64_t key = PassKey(
      job_.seed,
      static_cast<uint64_t>(drawing_worker()) * models_.size() + replica);
  // Compatible mode reproduces TensorFlow, which does not check for NaN.
  return std::make_unique<ModelGradientSource>(
      *models_[replica], InputOf(*data_), backends_[replica],
      MakeBatchSource(schedules_[replica], *data_), memory,
      ModelGradientSource::Options{
          .micro_batches = job_.micro_batches,
          .refuse_non_finite =
              job_.refuse_non_finite && job_.mode == SyncMode::kStrict,
          .key = key,
          .spans = &SpanRecorder::Of(SpanRecorder::Role::kWorker)});
}

}  // namespace lockstep::worker
