#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_TRAINED_JOB_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_TRAINED_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job_config.h"
#include "deploy/cli/command/user_command.h"
#include "worker/compute/backend/compute_backend.h"

namespace lockstep::cli {

// Name of an environment variable of a user's program that computes with one
// checkpoint: the checkpoint's directory, which has model.safetensors.
inline constexpr char kCheckpointVariable[] = "LOCKSTEP_CHECKPOINT";
// Likewise: "no" if the job's moving_average.evaluate is false, else "yes".
inline constexpr char kAveragedVariable[] = "LOCKSTEP_AVERAGED";

// The end of the help of commands that Become() a program.
inline constexpr char kProgramHelp[] =
    "After -- stands a program of your own, which computes in place of a "
    "built-in model and finds the checkpoint's directory in "
    "LOCKSTEP_CHECKPOINT: -- python3 eval.py";

// Stands for the newest checkpoint.
inline constexpr int64_t kNewestStep = -1;

// Opens a checkpoint below `directory` and compares the hashes of its files: a
// damaged one has plausible values, too.
//
//   kDataLoss  the newest is wanted, and is damaged
//   and the errors of CheckpointStore::Open(), OpenLatest() and Verify()
absl::StatusOr<CheckpointReader> OpenSound(const std::string& directory,
                                           int64_t step);

// Checks that --out of a command, `out`, names no file yet; empty is none.
//
//   kAlreadyExists  it does
absl::Status CheckOutIsNew(const std::string& out);

// TrainedJob holds the flags of commands that compute with a checkpoint: --job,
// --set, --checkpoints, --step, --device and --compute_threads.
//
// Threads: not thread-safe; Become() changes the environment, which no other
//          thread may read at the time.
class TrainedJob {
 public:
  // Adds the flags to `command`, which must not be parsed after this object is
  // destroyed.
  explicit TrainedJob(CLI::App& command);
  TrainedJob(const TrainedJob&) = delete;
  TrainedJob& operator=(const TrainedJob&) = delete;

  //   kInvalidArgument  there is no job
  //   and the errors of ReadFlagFile() and DecodeJobFile()
  absl::StatusOr<JobConfig> Read() const;
  // As Read(), for commands that need a built-in model.
  //
  //   kInvalidArgument  also: the job's workers were programs
  absl::StatusOr<JobConfig> ReadBuiltIn() const;

  // Opens a checkpoint of `job`, which must be a result of Read().
  //
  //   kInvalidArgument  neither the job nor a flag names the directory
  //   and the errors of OpenSound()
  absl::StatusOr<CheckpointReader> OpenCheckpoint(const JobConfig& job) const;

  // Opens the device. Errors: those of worker::MakeBackend()
  absl::StatusOr<std::unique_ptr<worker::ComputeBackend>> OpenDevice() const;

  // Replaces this process by a program of the user, whose environment has
  // kCheckpointVariable and kAveragedVariable. With --checkpoints no job need
  // be given. Returns only if that fails:
  //
  //   kInvalidArgument  there is no such program; as OpenCheckpoint()
  //   and the errors of OpenCheckpoint() and DecodeJobFile()
  absl::Status Become(const UserCommand& command) const;

 private:
  // The job's directory of checkpoints.
  absl::StatusOr<std::string> Directory(const JobConfig& job) const;

  std::string file_;
  std::vector<std::string> settings_;
  std::string checkpoints_;
  int64_t step_ = kNewestStep;
  std::string device_ = "auto";
  int threads_ = 0;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_TRAINED_JOB_H_
