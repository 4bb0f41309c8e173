#ifndef LOCKSTEP_WORKER_TABLES_TABLE_WORKLOAD_H_
#define LOCKSTEP_WORKER_TABLES_TABLE_WORKLOAD_H_

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
#include "common/numeric/auc.h"
#include "common/plan/variable_spec.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// The score of a checkpoint on a test set.
struct TableScore {
  double loss = 0;      // mean over the test set
  double accuracy = 0;  // in [0, 1]
  int64_t examples = 0;
  std::optional<double> auc = {};
};

// Called now and then with the number of the `total` examples that have been
// scored. May be null.
using OnScored = std::function<void(int64_t done, int64_t total)>;

// TableWorkload is a model with tables and its data, for a worker to train or
// for the evaluator to score. Tables have many rows and a batch needs few of
// them, so the rows to pull are chosen before a pass is computed.
//
// Threads: not thread-safe.
class TableWorkload {
 public:
  virtual ~TableWorkload() = default;

  // Must return the same for every worker of a job.
  virtual const std::vector<VariableSpec>& variables() const = 0;
  // Examples of the training set; > 0.
  virtual int64_t num_examples() const = 0;

  // Makes these examples, by their index in [0, num_examples()), the current
  // batch, and chooses the rows of tables that it needs in `memory`. All random
  // draws must follow from `seed`. Errors: as ParameterMemory::ChooseRows().
  virtual absl::Status Prepare(absl::Span<const int64_t> examples,
                               uint64_t seed, ParameterMemory& memory) = 0;

  // Writes the gradients of the current batch, from the values in memory.
  //
  //   kResourceExhausted  there is too little memory for the batch
  virtual absl::StatusOr<GradientResult> Compute(ParameterMemory& memory) = 0;

  // Returns the log-odds of each example that its label is positive, in the
  // order of the files. The workload must have been made for kScore.
  //
  //   kUnimplemented  the model predicts nothing
  //   and the errors of CheckpointReader
  virtual absl::StatusOr<std::vector<ScoredExample>> Predict(
      const CheckpointReader& checkpoint, const OnScored& on_scored) = 0;

  // Compares the predictions with the labels. Errors are those of Predict().
  absl::StatusOr<TableScore> Score(const CheckpointReader& checkpoint,
                                   const OnScored& on_scored);
};

// Names of the kinds of models that have tables: those of HasTables().
const std::vector<std::string>& TableModelKinds();

// Reads the training set or the test set of the job.
enum class Purpose { kTrain, kScore };

//   kInvalidArgument  model.kind is none of them; a field of the job that the
//                     kind needs is missing or out of range; data that make no
//                     sense, naming file and place
//   others            as reading files
absl::StatusOr<std::unique_ptr<TableWorkload>> MakeTableWorkload(
    const JobConfig& job, Purpose purpose);

// Reads rows of a table of a checkpoint, one after the other. `ids` must
// ascend. For a growing table they are keys; a row that the checkpoint does not
// have, as training never met its key, is zeros.
//
//   errors of CheckpointReader::CheckVariable(), ReadKeys() and ReadRange()
absl::StatusOr<std::vector<float>> ReadTableRows(
    const CheckpointReader& checkpoint, const VariableSpec& table,
    absl::Span<const int64_t> ids);

// Returns the place of each id in `sorted`, which must have all of them.
std::vector<size_t> PlacesOf(absl::Span<const int64_t> ids,
                             absl::Span<const int64_t> sorted);

//   kInvalidArgument  the files of the set hold none
absl::Status CheckHasExamples(int64_t count, Purpose purpose);

// Returns memory as floats; all variables of these models are float32.
absl::Span<float> Floats(absl::Span<std::byte> bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_TABLE_WORKLOAD_H_
