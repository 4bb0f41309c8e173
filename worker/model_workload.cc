#include "worker/model_workload.h"

#include <utility>

#include "common/base/fingerprint.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/data/data_root.h"
#include "worker/device/model_gradient_source.h"
#include "worker/models/zoo/registry.h"
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

// Workers draw different numbers, and the same ones when they start again.
uint64_t PassKey(uint64_t seed, int worker) {
  return seed * 1'000'003 + static_cast<uint64_t>(worker);
}

}  // namespace

ModelWorkload::ModelWorkload(int worker,
                             std::unique_ptr<ComputeBackend> backend,
                             std::vector<std::string> data_roots)
    : worker_(worker),
      backend_(std::move(backend)),
      data_roots_(std::move(data_roots)) {}

absl::Status ModelWorkload::LoadData(const JobConfig& job) {
  if (data_.has_value() || tables_ != nullptr) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckWorkerFiles(job, data_roots_));
  if (job.model.kind == kExternalModel) {
    return absl::InvalidArgumentError(
        "model.kind is \"external\": the workers of this job are programs of "
        "its user; start that program in place of `worker`, or name a model");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckModelKind(job.model.kind));
  if (IsTableModel(job.model.kind)) {
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
  job_ = membership.job;
  LOCKSTEP_RETURN_IF_ERROR(LoadData(job_));
  backend_->set_precision(PrecisionOf(job_.compute_precision));
  if (tables_ == nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(model_, MakeModel(job_.model, InputOf(*data_)));
    variables_ = KeptVariables(*model_, job_.model);
  } else {
    variables_ = tables_->variables();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      schedule_, BatchSchedule::Create(
                     {num_examples(), job_.batch_size, membership.num_workers,
                      membership.data_shard, job_.seed, job_.data.epochs}));
  return absl::OkStatus();
}

std::optional<ExampleShape> ModelWorkload::examples() const {
  if (tables_ != nullptr) return std::nullopt;
  return ShapeOf(*data_);
}

absl::StatusOr<std::unique_ptr<GradientSource>> ModelWorkload::MakeSource(
    std::shared_ptr<ParameterMemory> memory) {
  memory_ = std::move(memory);
  if (tables_ == nullptr) {
    return std::make_unique<ModelGradientSource>(
        *model_, InputOf(*data_), *backend_,
        MakeBatchSource(*schedule_, *data_), *memory_,
        ModelGradientSource::Options{
            .micro_batches = job_.micro_batches,
            .refuse_non_finite =
                job_.refuse_non_finite && job_.mode == SyncMode::kStrict,
            .key = PassKey(job_.seed, worker_)});
  }
  Fingerprint draws;
  draws.Add(job_.seed).Add(static_cast<uint64_t>(worker_));
  return std::make_unique<TableGradientSource>(*tables_, *schedule_,
                                               draws.value(), *memory_);
}

}  // namespace lockstep::worker
