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

// The killed process.
enum class Victim {
  kWorker,
  kServer,
  kChief,
  kServerWithoutState,  // its state file is removed, as with its machine
};

// Returns "worker", "ps", "chief", "ps without state".
std::string VictimName(Victim victim);

// The interruption by a death, measured from the start of the successor's
// process.
struct Recovery {
  absl::Duration up;        // until the successor's port accepts connections
  absl::Duration going_on;  // until a step is committed that needed it
  // kServerWithoutState: time in which one thread reads the checkpoint from
  // disk; else zero.
  absl::Duration read_checkpoint;
};

// RecoveryRun is a job of the real programs: 1 chief, 2 ps, 2 workers, both
// needed in each step, an MLP with Momentum, the default heartbeat and lease.
// One process is killed, the others come to rest, and it is started again.
//
// Threads: not thread-safe.
// Owns:    its processes, which the destructor kills.
// Errors:  kDeadlineExceeded or kFailedPrecondition; others as
//          ProcessCluster and CoordinatorClient.
class RecoveryRun {
 public:
  // Starts a job with about `bytes` of variables, without slots, in
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
  // Makes a checkpoint, then some steps that will be lost. Returns the time to
  // read the checkpoint.
  absl::StatusOr<absl::Duration> PrepareGoingBack();
  absl::StatusOr<absl::Duration> ReadCheckpoint(int64_t step) const;
  // Drops it from the page cache, so that reads go to the disk.
  void ForgetCheckpoint(int64_t step) const;
  // Returns the step at which the job stands still, or the last known step if
  // the chief was killed.
  absl::StatusOr<int64_t> AwaitRest(Victim victim);
  absl::StatusOr<int64_t> AwaitStepAfter(int64_t step);
  absl::Status AwaitPort(const std::string& job, int index);
  absl::Status AwaitGoingOn(Victim victim, int64_t rest);

  const std::string checkpoints_;
  const std::string job_file_;
  const std::string directory_;
  const std::string state_directory_;
  std::unique_ptr<lockstep::testing::ProcessCluster> cluster_;
  // Replaced after each death of the chief: a waiting client looks for the
  // restarted chief only once a second.
  std::unique_ptr<cli::CoordinatorClient> chief_;
  int64_t recoveries_ = 0;  // of servers, as counted by the chief
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_RECOVERY_RUN_H_
