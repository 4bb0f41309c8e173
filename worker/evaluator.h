#ifndef LOCKSTEP_WORKER_EVALUATOR_H_
#define LOCKSTEP_WORKER_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/chief_client.h"
#include "common/cluster/cluster.h"
#include "worker/compute/compute_backend.h"
#include "worker/data/examples.h"
#include "worker/models/model.h"
#include "worker/parameter_memory.h"
#include "worker/tables/table_workload.h"

namespace lockstep {

// Evaluator is the evaluator task: it scores each new checkpoint on the test
// set and tells the chief. It takes no part in training. Of variables that have
// moving averages it scores these, unless the job says otherwise.
//
// Threads: RequestStop() may be called from any thread.
class Evaluator {
 public:
  struct Options {
    std::string device = "auto";
    int compute_threads = 1;
    std::string expected_job;
    // As ChiefClient::Options has it.
    absl::Duration chief_wait = absl::InfiniteDuration();
  };

  // Errors as Worker::Make().
  static absl::StatusOr<std::unique_ptr<Evaluator>> Make(
      const Cluster& cluster, const Options& options);

  // Scores until the job ends. Errors as Worker::Run().
  absl::Status Run();

  void RequestStop(const std::string& reason);

 private:
  Evaluator(ChiefClient::Options chief, std::unique_ptr<ComputeBackend> backend)
      : backend_(std::move(backend)), chief_(std::move(chief)) {}

  absl::Status Watch(const JobConfig& job);
  absl::Status Prepare(const JobConfig& job);
  absl::Status ChooseAverages(const JobConfig& job,
                              const std::vector<VariableSpec>& variables);
  // Scores the newest checkpoint if it is newer than `last`.
  absl::Status ScoreLatest(const CheckpointStore& store, int64_t& last);
  absl::StatusOr<TableScore> Score(const CheckpointReader& checkpoint);
  absl::StatusOr<Evaluation> ScoreImages(const CheckpointReader& checkpoint);

  const std::unique_ptr<ComputeBackend> backend_;
  ChiefClient chief_;
  Examples data_;
  ModelInput input_;
  std::unique_ptr<Model> model_;
  std::vector<std::string> averaged_;  // variables of which averages are scored
  std::unique_ptr<TableWorkload> tables_;  // in place of model and data
  std::vector<VariableSpec> kept_;  // the model's variables in checkpoints
  std::optional<ParameterMemory> memory_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATOR_H_
