#include "deploy/cli/inspect/trained_job.h"

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_store.h"
#include "deploy/cli/tasks/job_file.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {

TrainedJob::TrainedJob(CLI::App& command) {
  command.add_option("--job", file_, "The job file that it was trained with.")
      ->required();
  command.add_option("--set", settings_,
                     "KEY=VALUE: a value of the job, as for `lockstep run`.");
  command.add_option("--checkpoints", checkpoints_,
                     "Where the checkpoints are, if not in the job's "
                     "checkpoint.directory.");
}

absl::StatusOr<JobConfig> TrainedJob::Read() const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file_));
  return DecodeJobFile(text, file_, settings_);
}

absl::StatusOr<CheckpointReader> TrainedJob::OpenCheckpoint(
    const JobConfig& job, int64_t step) const {
  const std::string& directory =
      checkpoints_.empty() ? job.checkpoint.directory : checkpoints_;
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        "the job has no checkpoint.directory; give --checkpoints DIR");
  }
  const CheckpointStore store(directory);
  return step == kNewest ? store.OpenLatest() : store.Open(step);
}

}  // namespace lockstep::cli
