#ifndef LOCKSTEP_WORKER_SCORING_CHECKPOINT_SCORER_H_
#define LOCKSTEP_WORKER_SCORING_CHECKPOINT_SCORER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job_config.h"
#include "common/plan/example_shape.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/data/examples.h"
#include "worker/memory/parameter_memory.h"
#include "worker/models/model.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {

// The predictions of a model for a list of examples.
struct Predictions {
  int64_t examples = 0;
  int64_t classes = 0;
  // [examples, classes], row-major: the probability of each class, in [0, 1].
  // Models of log-odds have two classes, the positive one last.
  std::vector<float> probabilities;
};

// CheckpointScorer scores checkpoints of a job on its test set, and predicts
// the labels of other examples with them. It uses the moving averages of
// variables that have them, unless the job forbids it.
//
// Threads: not thread-safe.
// Borrows: the backend.
class CheckpointScorer {
 public:
  // Reads the test set.
  //
  //   kInvalidArgument  the job has no test set, or one that its model cannot
  //                     take
  //   others            as reading its files
  static absl::StatusOr<std::unique_ptr<CheckpointScorer>> Make(
      const JobConfig& job, ComputeBackend& backend);

  // As Make(), for examples without labels in place of a test set: `path` holds
  // features as data.test_images does, or for a model with tables, examples as
  // data.test_files does.
  //
  //   kInvalidArgument  neither data.classes nor data.train_labels says how
  //                     many classes there are, or the model has text for
  //                     examples; others as reading the file
  static absl::StatusOr<std::unique_ptr<CheckpointScorer>> MakeForFeatures(
      const JobConfig& job, const std::string& path, ComputeBackend& backend);

  // Makes the model that workers make of examples like these. Before this call
  // the model is that of the test set alone, which has too few classes if no
  // example of the last class is in it.
  //
  //   kInvalidArgument  the test set has pictures of another size, or a label
  //                     beyond the classes; says which
  absl::Status FitTo(const ExampleShape& examples);

  // FitTo() with the classes of the training set, if data.classes is not set
  // and the labels can be read; else has no effect.
  absl::Status FitToTrainingSet();

  // Returns loss (mean over the examples) and accuracy on the test set. Calls
  // `on_scored` after each batch. Errors are CheckpointReader's, and:
  //
  //   kFailedPrecondition  the checkpoint is of another model: no later one of
  //                        the job will have a score either
  absl::StatusOr<TableScore> Score(CheckpointReader& checkpoint,
                                   const OnScored& on_scored = nullptr);

  // Returns the probabilities of the classes for each example. Errors as of
  // Score(), and:
  //
  //   kUnimplemented  the model predicts no label of an example
  absl::StatusOr<Predictions> Predict(CheckpointReader& checkpoint,
                                      const OnScored& on_scored = nullptr);

 private:
  using OfBatch = std::function<absl::Status(
      const BatchView& batch, absl::Span<const ConstTensor> values)>;

  CheckpointScorer(const JobConfig& job, ComputeBackend& backend)
      : job_(job), backend_(backend) {}

  absl::Status MakeModelFor(int64_t classes);
  absl::Status CheckModel(const CheckpointReader& checkpoint) const;
  // Calls `compute` for one batch of the examples after the other, with the
  // checkpoint's values on the device.
  absl::Status ForEachBatch(const CheckpointReader& checkpoint,
                            const OnScored& on_scored, const OfBatch& compute);

  const JobConfig job_;
  ComputeBackend& backend_;
  Examples data_;
  std::string features_;  // the file of data_, if it is not the job's
  ModelInput input_;
  std::unique_ptr<Model> model_;
  std::vector<std::string> averaged_;      // of NamesUsedAveraged()
  std::unique_ptr<TableWorkload> tables_;  // in place of model and data
  std::vector<VariableSpec> kept_;  // the model's variables in checkpoints
  std::optional<ParameterMemory> memory_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SCORING_CHECKPOINT_SCORER_H_
