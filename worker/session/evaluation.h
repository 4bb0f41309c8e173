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

// Evaluation makes a user's program the evaluator task that TF_CONFIG names.
// The program reads the job's checkpoints and reports figures of them.
//
//   Join -> Wait (false: look for a checkpoint; Report) -> Wait (true) -> end
//
// A job whose last step is done waits for the figures of its last checkpoint,
// as it does with the evaluator `worker --evaluate`.
//
// Threads: one thread calls; RequestStop() and SetTrouble() may be called from
//          any thread. A process must not have an Evaluation and a Session.
class Evaluation {
 public:
  struct Options {
    std::string tf_config = {};  // file; empty: the environment variable
    // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
    // which `lockstep run` sets. Without either there are no certificates.
    std::string tls_dir = {};
    std::string expected_job = {};  // job name to insist on; empty: any
    // Empty: the environment variable LOCKSTEP_LOG_LEVEL, which `lockstep run`
    // sets, or else "warning".
    std::string log_level = {};
    // How long Join() waits for a chief that has never answered.
    absl::Duration chief_wait = absl::Minutes(10);
    // If true, this process ends when the process that started it ends.
    bool exit_with_parent = false;
  };

  //   kInvalidArgument  TF_CONFIG is malformed, or its task is no evaluator
  static absl::StatusOr<std::unique_ptr<Evaluation>> Make(
      const Options& options);

  // Waits for the chief and registers there. RequestStop() ends the wait.
  //
  // Errors as ChiefClient::Register().
  absl::Status Join();

  // Waits at most `timeout` for the end of the job. Returns true if the job has
  // ended or RequestStop() was called. Joins again if the lease has expired.
  //
  //   kFailedPrecondition  Join() has not succeeded, or a Wait() has failed
  //   others               of Join(), when it joins again
  absl::StatusOr<bool> Wait(absl::Duration timeout);

  // How often this evaluator has joined. When Wait() has joined again, the
  // chief may not know the figures that were reported before, so the program
  // must report those of the newest checkpoint once more.
  int joins() const;

  // Valid after Wait() has returned true, or Wait() or Join() an error:
  //   kOk         training is over
  //   kCancelled  the job was stopped, or this evaluator
  //   others      the job failed, or the chief is gone; with the chief's reason
  absl::Status end() const;
  // The exit code for end(), from the table in deploy/README.md.
  int exit_code() const;

  // The job's checkpoint.directory; empty if the job writes no checkpoints.
  // Valid after Join().
  const std::string& checkpoint_directory() const;
  const std::string& job_name() const;
  // The job's moving_average.evaluate: true if figures should be those of the
  // moving averages, of variables that have one. Valid after Join().
  bool scores_averages() const;

  // Reports the figures of the checkpoint of a step.
  //
  //   kInvalidArgument  as CheckFigures(), or no figure
  absl::Status Report(int64_t step, const std::vector<NamedFigure>& figures);

  // Sets the reason why this program cannot report figures of the newest
  // checkpoint. The next heartbeat carries it to the chief, and the end of the
  // job waits for figures only as long as it may take to notice the last
  // checkpoint. An empty `trouble` ends that state, and must be set before the
  // program computes figures of the next one.
  void SetTrouble(const std::string& trouble);

  // Leaves the job; the job does not wait for figures any more. `reason` goes
  // to the chief's log; it must be empty if the job has ended. Has no effect if
  // this process has not joined or has left.
  void Leave(const std::string& reason);

  // Makes Join() and Wait() return soon, and end() kCancelled.
  void RequestStop();

  // Leaves the job, unless Leave() was called.
  ~Evaluation();

 private:
  struct Parts;
  explicit Evaluation(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_EVALUATION_H_
