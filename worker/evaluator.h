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
#include "common/cluster/cluster.h"
#include "common/membership/chief_client.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/scoring/checkpoint_scorer.h"
#include "worker/scoring/scoring_progress.h"

namespace lockstep::worker {

// Evaluator is the evaluator task: it scores each new checkpoint on the test
// set and reports the score to the chief. It takes no part in training. If it
// cannot score, it leaves with the reason, so that the job does not wait for
// it.
//
// Threads: RequestStop() may be called from any thread.
class Evaluator {
 public:
  struct Options {
    std::string device = "auto";
    int compute_threads = 1;
    std::string expected_job;
    // As in ChiefClient::Options.
    absl::Duration chief_wait = absl::InfiniteDuration();
    // As for CheckEvaluatorFiles().
    std::vector<std::string> data_roots = {};
  };

  // Errors as Worker::Make().
  static absl::StatusOr<std::unique_ptr<Evaluator>> Make(
      const Cluster& cluster, const Options& options);

  // Scores until the job ends. Errors as Worker::Run(), and:
  //
  //   kInvalidArgument     the test set does not fit the job's training set
  //   kFailedPrecondition  the checkpoints are of another model
  absl::Status Run();

  // Makes Run() return soon, as ChiefClient::Stop() does. Nothing reports
  // `reason`: the parameter gives all tasks the same form of this call.
  void RequestStop(const std::string& reason);

 private:
  Evaluator(ChiefClient::Options chief, std::unique_ptr<ComputeBackend> backend,
            const Options& options);

  // Reads the test set, unless there is nothing to score.
  absl::Status Prepare(const JobConfig& job);
  // Scores new checkpoints until the job ends. Errors as Run().
  absl::Status Watch(const JobConfig& job);
  // Waits until the chief knows the workers' model, and makes the same one.
  absl::Status Agree();
  // Scores the newest checkpoint, unless it is `last`, the one that was scored
  // last.
  //
  //   kCancelled  the checkpoint was removed or lost meanwhile, and there is
  //               another
  absl::Status ScoreLatest(const CheckpointStore& store,
                           std::optional<Manifest>& last);
  // Reports the reason why the newest checkpoint has no score, and logs it if
  // it is new; kOk means that it has one.
  void SetTrouble(const absl::Status& status);

  const std::unique_ptr<ComputeBackend> backend_;
  const std::vector<std::string> data_roots_;
  ScoringProgress progress_;
  ChiefClient chief_;                         // reports the progress
  std::unique_ptr<CheckpointScorer> scorer_;  // null: nothing is scored
  std::string trouble_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_EVALUATOR_H_
