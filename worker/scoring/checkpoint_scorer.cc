#include "worker/scoring/checkpoint_scorer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/dataset.h"
#include "worker/device/device_variables.h"
#include "worker/models/zoo/registry.h"
#include "worker/scoring/averaged_values.h"
#include "worker/tables/log_odds.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kBatchSize = 500;    // pictures
constexpr int64_t kBatchBytes = 8192;  // of text

// The largest logit is subtracted first, so that no exponential overflows.
void SoftmaxInPlace(absl::Span<float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float& logit : logits) {
    logit = std::exp(logit - largest);
    sum += logit;
  }
  for (float& logit : logits) logit = static_cast<float>(logit / sum);
}

absl::StatusOr<int64_t> ClassesOf(const DataConfig& data) {
  if (data.classes > 0) return data.classes;
  const absl::StatusOr<int64_t> classes = CountClasses(data.train_labels);
  if (classes.ok()) return classes;
  return absl::InvalidArgumentError(absl::StrCat(
      "how many classes there are is not known: ", classes.status().message(),
      "; set data.classes"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointScorer>> CheckpointScorer::Make(
    const JobConfig& job, ComputeBackend& backend) {
  if (!job.data.has_test_set()) {
    return absl::InvalidArgumentError(
        "the job has no test set; set data.test_images and data.test_labels, "
        "data.test_text or data.test_files");
  }
  std::unique_ptr<CheckpointScorer> scorer(new CheckpointScorer(job, backend));
  if (HasTables(job.model)) {
    LOCKSTEP_ASSIGN_OR_RETURN(scorer->tables_,
                              MakeTableWorkload(job, Purpose::kScore));
    LOCKSTEP_ASSIGN_OR_RETURN(
        scorer->averaged_,
        NamesUsedAveraged(job, scorer->tables_->variables()));
    return scorer;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(scorer->data_, LoadTestExamples(job.data));
  LOCKSTEP_RETURN_IF_ERROR(scorer->MakeModelFor(scorer->data_.classes));
  return scorer;
}

absl::StatusOr<std::unique_ptr<CheckpointScorer>>
CheckpointScorer::MakeForFeatures(const JobConfig& job, const std::string& path,
                                  ComputeBackend& backend) {
  if (HasTables(job.model)) {
    // The file takes the place of the test set.
    JobConfig with_file = job;
    with_file.data.test_files = {path};
    return Make(with_file, backend);
  }
  if (!job.data.train_text.empty()) {
    return absl::InvalidArgumentError(
        "the job trains on text, whose examples have no label; `lockstep "
        "sample` continues a text");
  }
  std::unique_ptr<CheckpointScorer> scorer(new CheckpointScorer(job, backend));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t classes, ClassesOf(job.data));
  LOCKSTEP_ASSIGN_OR_RETURN(scorer->data_, LoadFeatures(path, classes));
  scorer->features_ = path;
  LOCKSTEP_RETURN_IF_ERROR(scorer->MakeModelFor(classes));
  return scorer;
}

absl::Status CheckpointScorer::MakeModelFor(int64_t classes) {
  ModelInput input = InputOf(data_);
  // The test set may have fewer classes than the training set.
  input.classes = classes;
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                            MakeModel(job_.model, input));
  LOCKSTEP_ASSIGN_OR_RETURN(
      memory_, ParameterMemory::Make(model->variables(),
                                     ParameterMemory::Gradients::kPrivate));
  kept_ = KeptVariables(*model, job_.model);
  input_ = input;
  model_ = std::move(model);
  LOCKSTEP_ASSIGN_OR_RETURN(averaged_,
                            NamesUsedAveraged(job_, model_->variables()));
  return absl::OkStatus();
}

absl::Status CheckpointScorer::FitTo(const ExampleShape& examples) {
  // Tables do not depend on the shape of examples.
  if (tables_ != nullptr) return absl::OkStatus();
  const ExampleShape own = ShapeOf(data_);
  ExampleShape same_classes = own;
  same_classes.classes = examples.classes;
  // Fewer classes are no mistake: the test set may lack the last ones.
  if (same_classes != examples) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the test set is of another kind than the training set: its examples "
        "are ",
        own.ToString(), ", the job trains on ", examples.ToString(),
        "; give data.test_images of the same size"));
  }
  if (own.classes > examples.classes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.test_labels has the label ", own.classes - 1,
        ", but the job trains on the classes 0 to ", examples.classes - 1,
        "; correct the label, or set data.classes to the number of classes"));
  }
  return MakeModelFor(examples.classes);
}

absl::Status CheckpointScorer::FitToTrainingSet() {
  if (tables_ != nullptr || data_.tokens > 0 || job_.data.classes > 0) {
    return absl::OkStatus();
  }
  const absl::StatusOr<int64_t> classes = CountClasses(job_.data.train_labels);
  // The training set need not be on this machine; the checkpoint's shapes still
  // reveal a wrong number of classes.
  if (!classes.ok()) return absl::OkStatus();
  ExampleShape examples = ShapeOf(data_);
  examples.classes = *classes;
  return FitTo(examples);
}

absl::Status CheckpointScorer::CheckModel(
    const CheckpointReader& checkpoint) const {
  // Compares with the types that checkpoints keep, not with those of the
  // computation.
  for (const VariableSpec& variable : kept_) {
    const absl::Status status = checkpoint.CheckVariable(variable);
    if (status.ok()) continue;
    // A file that cannot be read now says nothing about the model.
    if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status)) {
      return status;
    }
    ExampleShape examples = ShapeOf(data_);
    examples.classes = input_.classes;
    if (!features_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the examples of ", features_, " are ", examples.height, "x",
          examples.width, "x", examples.channels,
          "; the model of the checkpoint of step ",
          checkpoint.manifest().global_step, " takes others (",
          status.message(),
          "); give examples of the shape of those that it was trained with"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint of step ", checkpoint.manifest().global_step,
        " is of another model than the job makes of examples of ",
        examples.ToString(), " (", status.message(),
        "); give the job file that it was trained with, or, where the test "
        "set has no example of the last class, set data.classes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TableScore> CheckpointScorer::Score(CheckpointReader& checkpoint,
                                                   const OnScored& on_scored) {
  ReadAverages(averaged_, checkpoint);
  if (tables_ != nullptr) return tables_->Score(checkpoint, on_scored);
  BatchScore total;
  LOCKSTEP_RETURN_IF_ERROR(ForEachBatch(
      checkpoint, on_scored,
      [&](const BatchView& batch,
          absl::Span<const ConstTensor> values) -> absl::Status {
        LOCKSTEP_ASSIGN_OR_RETURN(const BatchScore part,
                                  model_->Evaluate(backend_, batch, values));
        total.loss_sum += part.loss_sum;
        total.correct += part.correct;
        total.examples += part.examples;
        return absl::OkStatus();
      }));
  const double examples = static_cast<double>(total.examples);
  return TableScore{total.loss_sum / examples,
                    static_cast<double>(total.correct) / examples,
                    total.examples};
}

absl::StatusOr<Predictions> CheckpointScorer::Predict(
    CheckpointReader& checkpoint, const OnScored& on_scored) {
  ReadAverages(averaged_, checkpoint);
  Predictions all;
  if (tables_ != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ScoredExample> log_odds,
                              tables_->Predict(checkpoint, on_scored));
    for (const auto& [odds, label] : log_odds) {
      const double positive = Probability(odds);
      // One column for each class, as models of pictures have.
      all.probabilities.push_back(static_cast<float>(1 - positive));
      all.probabilities.push_back(static_cast<float>(positive));
    }
    all.classes = 2;
    all.examples = static_cast<int64_t>(log_odds.size());
    return all;
  }
  if (data_.tokens > 0) {
    return absl::UnimplementedError(
        "the job's examples are text, which have no label; `lockstep sample` "
        "continues a text");
  }
  LOCKSTEP_RETURN_IF_ERROR(ForEachBatch(
      checkpoint, on_scored,
      [&](const BatchView& batch,
          absl::Span<const ConstTensor> values) -> absl::Status {
        LOCKSTEP_ASSIGN_OR_RETURN(const Tensor logits,
                                  model_->Logits(backend_, batch, values));
        std::vector<float> part(static_cast<size_t>(logits.size()));
        LOCKSTEP_RETURN_IF_ERROR(backend_.Download(
            logits, Tensor::Of<float>(absl::MakeSpan(part), logits.shape())));
        const size_t classes = static_cast<size_t>(input_.classes);
        for (size_t row = 0; row < part.size(); row += classes) {
          SoftmaxInPlace(absl::MakeSpan(part).subspan(row, classes));
        }
        all.probabilities.insert(all.probabilities.end(), part.begin(),
                                 part.end());
        return absl::OkStatus();
      }));
  all.classes = input_.classes;
  all.examples = data_.count;
  return all;
}

absl::Status CheckpointScorer::ForEachBatch(const CheckpointReader& checkpoint,
                                            const OnScored& on_scored,
                                            const OfBatch& compute) {
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(checkpoint));
  const std::vector<VariableSpec>& variables = model_->variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    const absl::Span<std::byte> value = memory_->value(i);
    LOCKSTEP_RETURN_IF_ERROR(
        checkpoint.Read(variables[i].name,
                        absl::MakeSpan(reinterpret_cast<float*>(value.data()),
                                       value.size() / sizeof(float))));
  }
  // Uploaded once for all batches.
  DeviceVariables device(variables, *memory_, backend_);
  LOCKSTEP_RETURN_IF_ERROR(device.Upload());
  const int64_t batch_size =
      data_.tokens > 0 ? std::max<int64_t>(1, kBatchBytes / data_.tokens)
                       : kBatchSize;
  BatchStage stage(backend_, input_);
  for (int64_t first = 0; first < data_.count; first += batch_size) {
    // The last batch may be smaller: every example counts exactly once.
    std::vector<int64_t> ids(std::min(batch_size, data_.count - first));
    std::iota(ids.begin(), ids.end(), first);
    LOCKSTEP_ASSIGN_OR_RETURN(Batch batch, data_.load(ids));
    LOCKSTEP_ASSIGN_OR_RETURN(BatchView view, stage.View(batch, 0, batch.size));
    LOCKSTEP_RETURN_IF_ERROR(compute(view, device.values()));
    if (on_scored != nullptr) on_scored(first + batch.size, data_.count);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
