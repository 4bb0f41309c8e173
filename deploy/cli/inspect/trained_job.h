#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_TRAINED_JOB_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_TRAINED_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job_config.h"

namespace lockstep::cli {

// TrainedJob holds the flags of commands that compute with a checkpoint: --job,
// --set and --checkpoints.
class TrainedJob {
 public:
  static constexpr int64_t kNewest = -1;

  // Adds the flags to `command`, which must not be parsed after this object is
  // destroyed.
  explicit TrainedJob(CLI::App& command);
  TrainedJob(const TrainedJob&) = delete;
  TrainedJob& operator=(const TrainedJob&) = delete;

  // Errors: those of ReadTextFile() and DecodeJobFile()
  absl::StatusOr<JobConfig> Read() const;

  // Opens a checkpoint of `job`, which must be a result of Read().
  //
  //   kInvalidArgument  neither the job nor a flag names the directory
  //   and the errors of CheckpointStore::Open() and OpenLatest()
  absl::StatusOr<CheckpointReader> OpenCheckpoint(const JobConfig& job,
                                                  int64_t step = kNewest) const;

 private:
  std::string file_;
  std::vector<std::string> settings_;
  std::string checkpoints_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_TRAINED_JOB_H_
