#ifndef LOCKSTEP_WORKER_TABLES_WIDE_AND_DEEP_H_
#define LOCKSTEP_WORKER_TABLES_WIDE_AND_DEEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/models/layers/layer_stack.h"
#include "worker/tables/example_columns.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {

// Wide and deep learning (Cheng and others, 2016): the log-odds of an example
// are the sum of a wide and of a deep part, trained together.
//
// Wide: a weight for each category and each cross of two, a row of
// "wide/weights". Deep: a row of "embedding/NAME" for each categorical feature;
// these rows and the numeric features, one after the other, pass through layers
// with ReLU, "hidden1" and so on, to "logits", whose bias is that of the whole
// model.
//
// The loss is the mean cross-entropy of a batch. Everything is computed on the
// CPU: tables need little arithmetic and the layers are small.
//
// Threads: as TableWorkload.
// Units:   memory grows with the batch; Predict() takes 8192 examples at a
//          time.
class WideAndDeep final : public TableWorkload {
 public:
  struct Options {
    int64_t embedding_dim = 8;  // > 0
    std::vector<int64_t> hidden_units = {};
    RowCut row_cut = RowCut::kMod;
  };

  // `backend` must use ordinary memory.
  WideAndDeep(const Options& options, ColumnLayout layout,
              ColumnExamples examples, std::unique_ptr<ComputeBackend> backend);

  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  int64_t num_examples() const override { return examples_.size(); }
  absl::Status Prepare(absl::Span<const int64_t> examples, uint64_t seed,
                       ParameterMemory& memory) override;
  absl::StatusOr<GradientResult> Compute(ParameterMemory& memory) override;
  absl::StatusOr<std::vector<ScoredExample>> Predict(
      const CheckpointReader& checkpoint, const OnScored& on_scored) override;

 private:
  // Chooses the rows `ids` of a table, and keeps the place in memory of each.
  absl::Status Choose(size_t table, const std::vector<int64_t>& ids,
                      ParameterMemory& memory);
  // Returns the log-odds of the batch that was prepared last, in its order.
  absl::StatusOr<std::vector<double>> LogOdds(const ParameterMemory& memory);
  // Writes the input of the layers, [examples, inputs()], to `to`.
  void FillInputs(const ParameterMemory& memory, float* to) const;
  // Writes all gradients; `errors` are the derivatives of the loss with respect
  // to the log-odds of the batch.
  absl::Status WriteGradients(absl::Span<const double> errors,
                              ParameterMemory& memory);
  void WriteWideGradients(absl::Span<const double> errors,
                          ParameterMemory& memory) const;
  void WriteEmbeddingGradients(const float* of_inputs,
                               ParameterMemory& memory) const;
  absl::Status Load(const CheckpointReader& checkpoint,
                    ParameterMemory& memory) const;

  size_t dim() const { return static_cast<size_t>(options_.embedding_dim); }
  // The first layer's index in variables(), after the table of weights and the
  // embeddings.
  size_t first_dense() const { return 1 + layout_.categorical.size(); }
  // Elements of an example in the input of the layers.
  size_t inputs() const {
    return layout_.categorical.size() * dim() + layout_.numeric.size();
  }

  const Options options_;
  const ColumnLayout layout_;
  const ColumnExamples examples_;
  const std::unique_ptr<ComputeBackend> backend_;
  LayerStack layers_;
  const std::vector<VariableSpec> variables_;

  std::vector<int64_t> batch_;
  // By table: the place in memory of each row that the examples of the batch
  // read, in order.
  std::vector<std::vector<size_t>> places_;
  Scratch inputs_memory_;
  Scratch logits_gradient_memory_;
  Scratch inputs_gradient_memory_;
};

// Reads TFRecord files of tf.train.Example.
//
//   kInvalidArgument  a field of the model is missing or out of range, or the
//                     files make no sense
//   and the errors of reading them
absl::StatusOr<std::unique_ptr<TableWorkload>> MakeWideAndDeep(
    const JobConfig& job, Purpose purpose);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_WIDE_AND_DEEP_H_
