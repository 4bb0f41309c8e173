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

// What a model says of each of its examples.
struct Predictions {
  int64_t examples = 0;
  int64_t classes = 0;
  // [examples, classes], row-major: the probability of each class. Models of
  // log-odds have two classes, the positive one last.
  std::vector<float> probabilities;
};

// CheckpointScorer scores checkpoints of a job on its test set, and predicts
// the labels of other examples with them. It computes with the moving averages
// of variables that have them, unless the job says otherwise.
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

  // The same for examples without labels, in place of a test set: features as
  // of data.test_images, or for a model with tables a file as of
  // data.test_files.
  //
  //   kInvalidArgument  neither data.classes nor data.train_labels says how
  //                     many classes there are, or the model has text for
  //                     examples; others as reading the file
  static absl::StatusOr<std::unique_ptr<CheckpointScorer>> MakeForFeatures(
      const JobConfig& job, const std::string& path, ComputeBackend& backend);

  // From now on the model is the one that workers make of examples like these.
  // Until then it is the one that the test set alone would give, which has too
  // few classes if no example of the last one is in it.
  //
  //   kInvalidArgument  the test set has pictures of another size, or a label
  //                     beyond the classes; says which
  absl::Status FitTo(const ExampleShape& examples);

  // FitTo() with the classes of the training set, where its labels can be read
  // and data.classes does not say how many there are.
  absl::Status FitToTrainingSet();

  // Errors are CheckpointReader's, and:
  //
  //   kFailedPrecondition  the checkpoint is of another model: no later one of
  //                        the job will have a score either
  absl::StatusOr<TableScore> Score(CheckpointReader& checkpoint,
                                   const OnScored& on_scored = nullptr);

  // Errors as of Score(), and:
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
  absl::Status ChooseAverages(const std::vector<VariableSpec>& variables);
  absl::Status CheckModel(const CheckpointReader& checkpoint) const;
  void ReadAverages(CheckpointReader& checkpoint) const;
  // Calls `compute` for one batch of the examples after the other, with the
  // checkpoint's values on the device.
  absl::Status ForEachBatch(const CheckpointReader& checkpoint,
                            const OnScored& on_scored, const OfBatch& compute);

  const JobConfig job_;
  ComputeBackend& backend_;
  Examples data_;
  ModelInput input_;
  std::unique_ptr<Model> model_;
  std::vector<std::string> averaged_;  // variables of which averages are scored
  std::unique_ptr<TableWorkload> tables_;  // in place of model and data
  std::vector<VariableSpec> kept_;  // the model's variables in checkpoints
  std::optional<ParameterMemory> memory_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SCORING_CHECKPOINT_SCORER_H_
