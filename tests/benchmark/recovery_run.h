#ifndef LOCKSTEP_TESTS_BENCHMARK_RECOVERY_RUN_H_
#define LOCKSTEP_TESTS_BENCHMARK_RECOVERY_RUN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/cli/status/coordinator_client.h"
#include "tests/testing/process_cluster.h"

namespace lockstep::benchmark {

// Who is killed.
enum class Victim {
  kWorker,
  kServer,
  kChief,
  kServerWithoutState,  // and its state file is gone, as with its machine
};

// "worker", "ps", "chief", "ps without state".
std::string VictimName(Victim victim);

// How long a death held up a job, from the start of the successor's process on.
struct Recovery {
  absl::Duration up;        // until the successor's port takes connections
  absl::Duration going_on;  // until a step is committed that needed it
  // kServerWithoutState: what one thread takes to read the checkpoint from its
  // disk; else zero.
  absl::Duration read_checkpoint;
};

// RecoveryRun is a job of the real programs: 1 chief, 2 ps, 2 workers, both
// needed in each step, an MLP with Momentum, the default heartbeat and lease.
// Somebody is killed, the others come to rest, and he is started again.
//
// Threads: not safe to share.
// Owns:    its processes, which are killed when it goes.
// Errors:  kDeadlineExceeded or kFailedPrecondition; others as
//          ProcessCluster and CoordinatorClient.
class RecoveryRun {
 public:
  // Starts a job whose variables are of about `bytes`, without slots, in
  // `directory`, and waits for its first steps. State files are in
  // `state_directory`.
  static absl::StatusOr<std::unique_ptr<RecoveryRun>> Start(
      int64_t bytes, const std::string& directory,
      const std::string& state_directory);

  absl::StatusOr<Recovery> Measure(Victim victim);

 private:
  RecoveryRun(std::string directory, std::string state_directory)
      : checkpoints_(directory + "/checkpoints"),
        job_file_(directory + "/job.textproto"),
        directory_(std::move(directory)),
        state_directory_(std::move(state_directory)) {}

  absl::Status WriteFiles(int64_t bytes) const;
  absl::Status StartCluster();
  absl::Status RemoveStateFile() const;
  // A checkpoint, then some steps that will be lost. Returns what it takes to
  // read it.
  absl::StatusOr<absl::Duration> PrepareGoingBack();
  absl::StatusOr<absl::Duration> ReadCheckpoint(int64_t step) const;
  // Reads of it have to go to the disk from now on.
  void ForgetCheckpoint(int64_t step) const;
  // The step at which the job stands still, or where it was when the chief
  // that could tell was killed.
  absl::StatusOr<int64_t> AwaitRest(Victim victim);
  absl::StatusOr<int64_t> AwaitStepAfter(int64_t step);
  absl::Status AwaitPort(const std::string& job, int index);
  absl::Status AwaitGoingOn(Victim victim, int64_t rest);

  const std::string checkpoints_;
  const std::string job_file_;
  const std::string directory_;
  const std::string state_directory_;
  std::unique_ptr<lockstep::testing::ProcessCluster> cluster_;
  // A new one after each death of the chief: what waits for the old one to
  // come back looks for it only once a second.
  std::unique_ptr<CoordinatorClient> chief_;
  int64_t recoveries_ = 0;  // of servers, as the chief counted them
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_RECOVERY_RUN_H_
