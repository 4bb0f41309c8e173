#include "deploy/cli/inspect/trained_job.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/step_directory.h"
#include "common/flags/flag_parser.h"
#include "deploy/cli/tasks/job_file.h"
#include "deploy/cli/tasks/log_files.h"
#include "worker/compute/registry.h"

namespace lockstep::cli {
namespace {

constexpr size_t kMostSteps = 20;  // that a message lists

// Returns the error of a step that has no checkpoint, with the steps that have.
absl::Status WithSteps(const absl::Status& missing,
                       const std::string& directory) {
  const absl::StatusOr<std::vector<int64_t>> steps =
      ListStepDirectories(directory);
  if (!steps.ok() || steps->empty()) return missing;
  const auto most = static_cast<std::ptrdiff_t>(kMostSteps);
  const auto first = steps->end() - std::min(std::ssize(*steps), most);
  return absl::NotFoundError(absl::StrCat(
      missing.message(), "; give one of ",
      first == steps->begin() ? "" : "the newest, ",
      absl::StrJoin(first, steps->end(), ", "), ", or leave --step out"));
}

// A command that passed over a damaged newest checkpoint would show an older
// step, of which a reader of its output need not know that it is older.
absl::StatusOr<CheckpointReader> OpenNewest(const CheckpointStore& store,
                                            const std::string& directory) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LatestCheckpoint latest, store.Latest());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                            ListStepDirectories(directory));
  if (!latest.manifest.has_value() || latest.warnings.empty() ||
      steps.empty()) {
    return store.OpenLatest();
  }
  absl::StatusOr<CheckpointReader> newest = store.Open(steps.back());
  if (newest.ok()) return newest;
  return absl::Status(
      newest.status().code(),
      absl::StrCat(newest.status().message(),
                   "; the newest whole checkpoint is of step ",
                   latest.manifest->global_step,
                   ": name that with --step, or move this one elsewhere"));
}

}  // namespace

absl::StatusOr<CheckpointReader> OpenSound(const std::string& directory,
                                           int64_t step) {
  const CheckpointStore store(directory);
  absl::StatusOr<CheckpointReader> checkpoint =
      step == kNewestStep ? OpenNewest(store, directory) : store.Open(step);
  if (step != kNewestStep && absl::IsNotFound(checkpoint.status())) {
    return WithSteps(checkpoint.status(), directory);
  }
  LOCKSTEP_RETURN_IF_ERROR(checkpoint.status());
  LOCKSTEP_RETURN_IF_ERROR(store.Verify(checkpoint->manifest().global_step));
  return checkpoint;
}

absl::Status CheckOutIsNew(const std::string& out) {
  std::error_code unknown;  // the write then fails, too, and says why
  if (!std::filesystem::exists(out, unknown)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "--out is ", out, ", which exists: remove it or name another"));
}

TrainedJob::TrainedJob(CLI::App& command) {
  command.add_option("--job", file_,
                     "Job file that the checkpoint was trained with.");
  command.add_option("--set", settings_,
                     "KEY=VALUE: a value of the job, as for `lockstep run`.");
  command.add_option("--checkpoints", checkpoints_,
                     "Where the checkpoints are, if not in the job's "
                     "checkpoint.directory.");
  command
      .add_option("--step", step_,
                  "Global step of the checkpoint; by default the newest.")
      ->check(AtLeast(0));
  command
      .add_option("--device", device_,
                  "Device to compute on: cpu, cuda or auto.")
      ->capture_default_str();
  command
      .add_option("--compute_threads", threads_,
                  "Threads of each large operation on the CPU; 0 for one per "
                  "core.")
      ->check(AtLeast(0))
      ->capture_default_str();
}

absl::StatusOr<JobConfig> TrainedJob::Read() const {
  if (file_.empty() && settings_.empty()) {
    return absl::InvalidArgumentError(
        "there is no job; give --job FILE, or, for a model of your program, "
        "--checkpoints DIR -- COMMAND, as in -- python3 eval.py");
  }
  // A job may consist of settings alone, as for `lockstep run` without --job.
  if (file_.empty()) return DecodeJobFile("", "--set", settings_);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            ReadFlagFile("--job", file_));
  return DecodeJobFile(text, file_, settings_);
}

absl::StatusOr<JobConfig> TrainedJob::ReadBuiltIn() const {
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig job, Read());
  if (job.model.kind == kExternalModel) {
    return absl::InvalidArgumentError(
        "model.kind is external: the model is your program's; give that after "
        "--, as in -- python3 eval.py");
  }
  return job;
}

absl::StatusOr<std::string> TrainedJob::Directory(const JobConfig& job) const {
  const std::string& directory =
      checkpoints_.empty() ? job.checkpoint.directory : checkpoints_;
  if (!directory.empty()) return directory;
  return absl::InvalidArgumentError(
      "the job has no checkpoint.directory; give --checkpoints DIR");
}

absl::StatusOr<CheckpointReader> TrainedJob::OpenCheckpoint(
    const JobConfig& job) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string directory, Directory(job));
  return OpenSound(directory, step_);
}

absl::StatusOr<std::unique_ptr<worker::ComputeBackend>> TrainedJob::OpenDevice()
    const {
  return worker::MakeBackend(device_, {.threads = threads_});
}

absl::Status TrainedJob::Become(const UserCommand& command) const {
  const char* path = getenv("PATH");
  LOCKSTEP_ASSIGN_OR_RETURN(UserCommand resolved,
                            ResolveCommand(command, path ? path : ""));
  JobConfig job;
  // The job is read for its directory, and for what its evaluator scores.
  if (checkpoints_.empty() || !file_.empty() || !settings_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(job, Read());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string directory, Directory(job));
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader checkpoint,
                            OpenCheckpoint(job));
  const std::string found = absl::StrCat(
      directory, "/", StepDirectoryName(checkpoint.manifest().global_step));
  // The variables may be set already, for another checkpoint.
  setenv(kCheckpointVariable, found.c_str(), /*overwrite=*/1);
  setenv(kAveragedVariable, job.moving_average.evaluate ? "yes" : "no",
         /*overwrite=*/1);
  std::vector<char*> args;
  for (std::string& word : resolved) args.push_back(word.data());
  args.push_back(nullptr);
  execv(args.front(), args.data());
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", args[0]));
}

}  // namespace lockstep::cli
