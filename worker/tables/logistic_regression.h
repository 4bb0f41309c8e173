#ifndef LOCKSTEP_WORKER_TABLES_LOGISTIC_REGRESSION_H_
#define LOCKSTEP_WORKER_TABLES_LOGISTIC_REGRESSION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/tables/libsvm.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {

// Logistic regression over sparse features. The table "weights" has a row of
// one number for each feature, or, if it grows, for each feature that occurred
// in a batch; "bias" is one more number. The loss is the mean cross-entropy of
// a batch. The score is the log-odds, by which the AUC orders, too.
//
// Threads: as TableWorkload.
class LogisticRegression final : public TableWorkload {
 public:
  // `num_rows` is the number of features; for a growing table, the limit of its
  // rows.
  LogisticRegression(SparseExamples examples, int64_t num_rows, RowCut row_cut);

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
  // Log-odds of an example, from weights at the places of its features.
  double LogOdds(int64_t example, absl::Span<const float> weights,
                 double bias) const;

  const SparseExamples examples_;
  const std::vector<VariableSpec> variables_;
  std::vector<int64_t> batch_;
  // For each feature of each example of the batch, in order: its row in memory.
  std::vector<size_t> places_;
};

// Reads LIBSVM files.
//
//   kInvalidArgument  not one of model.features and model.row_limit is set, or
//                     the files make no sense
//   and the errors of reading them
absl::StatusOr<std::unique_ptr<TableWorkload>> MakeLogisticRegression(
    const JobConfig& job, Purpose purpose);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_LOGISTIC_REGRESSION_H_
