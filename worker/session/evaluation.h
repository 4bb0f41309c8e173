#ifndef LOCKSTEP_WORKER_SESSION_EVALUATION_H_
#define LOCKSTEP_WORKER_SESSION_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/plan/figure.h"

namespace lockstep::worker {

// Evaluation makes a program the evaluator of a job: the one that TF_CONFIG
// names. The program reads the checkpoints, and reports figures of them.
//
//   Join -> Wait (false: look for a checkpoint; Report) -> Wait (true) -> end
//
// The job waits at its end for the figures of its last checkpoint, as for those
// of `worker --evaluate`.
//
// Threads: one thread calls; RequestStop() may come from any. A process is one
//          evaluator or one worker.
class Evaluation {
 public:
  struct Options {
    std::string tf_config = {};  // file; empty: the environment variable
    // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
    // which `lockstep run` sets. Without either there are no certificates.
    std::string tls_dir = {};
    std::string expected_job = {};  // job name to insist on; empty: any
    std::string log_level = "warning";
    // For a chief that has never answered.
    absl::Duration chief_wait = absl::Minutes(10);
    // End when the process that started this one ends.
    bool exit_with_parent = false;
  };

  //   kInvalidArgument  TF_CONFIG that cannot be, or names no evaluator
  static absl::StatusOr<std::unique_ptr<Evaluation>> Make(
      const Options& options);

  // Waits for the chief and registers; may be interrupted by RequestStop().
  //
  // Errors as ChiefClient::Register().
  absl::Status Join();

  // Waits until the job has ended, at most `timeout`; true: it has. Joins again
  // where the chief took this process for dead.
  absl::StatusOr<bool> Wait(absl::Duration timeout);

  // After Wait() returned true, or an error of Join():
  //   kOk         training is over
  //   kCancelled  the job was stopped, or this evaluator
  //   others      the job failed, or the chief is gone; the chief's reason
  absl::Status end() const;
  // The exit code for end(), as the README's table has it.
  int exit_code() const;

  // The job's checkpoint.directory; empty: it writes none. Valid after Join().
  const std::string& checkpoint_directory() const;
  const std::string& job_name() const;

  // Reports the figures of the checkpoint of a step.
  //
  //   kInvalidArgument  as CheckFigures(), or no figure
  absl::Status Report(int64_t step, const std::vector<NamedFigure>& figures);

  // Tells the chief why this program reports no figure of the newest
  // checkpoint, so that the job does not wait for one; empty: it will report.
  void SetTrouble(const std::string& trouble);

  // Leaves the job with a reason, for which the job does not wait for figures.
  // Leave("") is for the end of the job.
  void Leave(const std::string& reason);

  void RequestStop();

  ~Evaluation();

 private:
  struct Parts;
  explicit Evaluation(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_EVALUATION_H_
