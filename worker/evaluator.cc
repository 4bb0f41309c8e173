#include "worker/evaluator.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/job/variable_settings.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "worker/compute_device.h"
#include "worker/device_variables.h"
#include "worker/models/registry.h"

namespace lockstep {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);
constexpr int64_t kBatchSize = 500;    // pictures
constexpr int64_t kBatchBytes = 8192;  // of text

}  // namespace

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Make(
    const Cluster& cluster, const Options& options) {
  ChiefClient::Options chief;
  LOCKSTEP_ASSIGN_OR_RETURN(chief.address, cluster.Address(cluster.chief()));
  chief.task = cluster.self();
  chief.expected_job = options.expected_job;
  chief.chief_wait = options.chief_wait;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ComputeBackend> backend,
      OpenComputeDevice(options.device, options.compute_threads));
  return std::unique_ptr<Evaluator>(
      new Evaluator(std::move(chief), std::move(backend)));
}

void Evaluator::RequestStop(const std::string&) { chief_.Stop(); }

absl::Status Evaluator::Prepare(const JobConfig& job) {
  if (!job.data.has_test_set() || job.checkpoint.directory.empty()) {
    spdlog::warn(
        "nothing to score: the job has no data.test_images, test_text or "
        "test_files, or no checkpoint.directory");
    return absl::OkStatus();
  }
  if (IsTableModel(job.model.kind)) {
    LOCKSTEP_ASSIGN_OR_RETURN(tables_, MakeTableWorkload(job, Purpose::kScore));
    return ChooseAverages(job, tables_->variables());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(data_, LoadTestExamples(job.data));
  input_ = InputOf(data_);
  LOCKSTEP_ASSIGN_OR_RETURN(model_, MakeModel(job.model, input_));
  kept_ = KeptVariables(*model_, job.model);
  LOCKSTEP_ASSIGN_OR_RETURN(
      memory_, ParameterMemory::Make(model_->variables(),
                                     ParameterMemory::Gradients::kPrivate));
  return ChooseAverages(job, model_->variables());
}

absl::Status Evaluator::ChooseAverages(
    const JobConfig& job, const std::vector<VariableSpec>& variables) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<VariableSettings> settings,
                            SettingsOf(job, variables));
  averaged_.clear();
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!settings[i].averaged || !job.moving_average.evaluate) continue;
    averaged_.push_back(variables[i].name);
  }
  return absl::OkStatus();
}

absl::Status Evaluator::Run() {
  absl::Status status;
  do {
    absl::StatusOr<ChiefClient::Membership> membership = chief_.Register();
    if (!membership.ok()) return membership.status();
    status = Prepare(membership->job);
    if (status.ok()) status = Watch(membership->job);
  } while (chief_.lease_lost());
  const LeaveCause cause = status.ok() ? LeaveCause::kDone
                           : absl::IsCancelled(status)
                               ? LeaveCause::kStopped
                               : LeaveCause::kCannotTakePart;
  chief_.Leave(cause, status.ok() ? "done" : std::string(status.message()));
  return status;
}

absl::Status Evaluator::Watch(const JobConfig& job) {
  const CheckpointStore store(job.checkpoint.directory);
  int64_t last = -1;
  while (!chief_.WaitForEnd(kPoll)) {
    if (chief_.stopped()) return absl::CancelledError("asked to stop");
    if (model_ == nullptr && tables_ == nullptr) continue;
    const absl::Status status = ScoreLatest(store, last);
    if (absl::IsCancelled(status)) continue;
    // A checkpoint that was pruned meanwhile is no reason to end.
    if (!status.ok()) {
      spdlog::warn("no score: {}", std::string(status.message()));
    }
  }
  return chief_.end();
}

absl::Status Evaluator::ScoreLatest(const CheckpointStore& store,
                                    int64_t& last) {
  LOCKSTEP_ASSIGN_OR_RETURN(LatestCheckpoint latest, store.Latest());
  if (!latest.manifest.has_value()) return absl::OkStatus();
  const int64_t step = latest.manifest->global_step;
  if (step <= last) return absl::OkStatus();
  SetLogStep(step);
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader reader, store.Open(step));
  for (const std::string& name : averaged_) {
    reader.ReadInPlaceOf(name, TensorNameOf(name, kMovingAverageName));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const TableScore score, Score(reader));
  LOCKSTEP_RETURN_IF_ERROR(chief_.ReportEvaluation(
      step, score.loss, score.accuracy, score.examples, score.auc));
  spdlog::info("step {}: accuracy {:.4f}, loss {:.4f}{}", step, score.accuracy,
               score.loss,
               score.auc.has_value() ? absl::StrFormat(", AUC %.4f", *score.auc)
                                     : std::string());
  last = step;
  return absl::OkStatus();
}

absl::StatusOr<TableScore> Evaluator::Score(
    const CheckpointReader& checkpoint) {
  if (tables_ != nullptr) return tables_->Score(checkpoint);
  LOCKSTEP_ASSIGN_OR_RETURN(const Evaluation evaluation,
                            ScoreImages(checkpoint));
  const double examples = static_cast<double>(evaluation.examples);
  return TableScore{evaluation.loss_sum / examples,
                    static_cast<double>(evaluation.correct) / examples,
                    evaluation.examples};
}

absl::StatusOr<Evaluation> Evaluator::ScoreImages(
    const CheckpointReader& checkpoint) {
  const std::vector<VariableSpec>& variables = model_->variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(checkpoint.CheckVariable(kept_[i]));
    const absl::Span<std::byte> value = memory_->value(i);
    LOCKSTEP_RETURN_IF_ERROR(
        checkpoint.Read(variables[i].name,
                        absl::MakeSpan(reinterpret_cast<float*>(value.data()),
                                       value.size() / sizeof(float))));
  }
  DeviceVariables device(variables, *memory_, *backend_);
  LOCKSTEP_RETURN_IF_ERROR(device.Upload());
  const int64_t batch_size =
      data_.tokens > 0 ? std::max<int64_t>(1, kBatchBytes / data_.tokens)
                       : kBatchSize;
  BatchStage stage(*backend_, input_);
  Evaluation total;
  for (int64_t first = 0; first < data_.count; first += batch_size) {
    std::vector<int64_t> ids(std::min(batch_size, data_.count - first));
    std::iota(ids.begin(), ids.end(), first);
    LOCKSTEP_ASSIGN_OR_RETURN(Batch batch, data_.load(ids));
    LOCKSTEP_ASSIGN_OR_RETURN(BatchView view, stage.View(batch, 0, batch.size));
    LOCKSTEP_ASSIGN_OR_RETURN(
        Evaluation part, model_->Evaluate(*backend_, view, device.values()));
    total.loss_sum += part.loss_sum;
    total.correct += part.correct;
    total.examples += part.examples;
  }
  return total;
}

}  // namespace lockstep
