#include "deploy/cli/tasks/job_checks.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/directory_owner.h"
#include "common/checkpoint/files/trial_directory.h"
#include "common/checkpoint/step_directory.h"
#include "common/job/replicas.h"
#include "deploy/cli/tasks/job_file.h"
#include "worker/data/batch_schedule.h"
#include "worker/data/examples.h"
#include "worker/data/files/array_file.h"
#include "worker/tables/model_kinds.h"
#include "worker/tables/table_workload.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// Where the packages dataset-NAME put their files, each in NAME.
constexpr char kDataSets[] = "/usr/share/datasets/";

struct NamedFile {
  std::string field;
  std::string path;
  bool is_array = false;  // FILE.npz:NAME is an array of FILE.npz
};

void AddList(const std::string& field, const std::vector<std::string>& paths,
             std::vector<NamedFile>& files) {
  for (size_t i = 0; i < paths.size(); ++i) {
    files.push_back({absl::StrCat(field, "[", i, "]"), paths[i]});
  }
}

std::vector<NamedFile> TrainingFiles(const DataConfig& data) {
  std::vector<NamedFile> files = {
      {"data.train_images", data.train_images, /*is_array=*/true},
      {"data.train_labels", data.train_labels, /*is_array=*/true},
      {"data.train_text", data.train_text}};
  AddList("data.train_files", data.train_files, files);
  return files;
}

std::vector<NamedFile> TestFiles(const DataConfig& data) {
  std::vector<NamedFile> files = {
      {"data.test_images", data.test_images, /*is_array=*/true},
      {"data.test_labels", data.test_labels, /*is_array=*/true},
      {"data.test_text", data.test_text}};
  AddList("data.test_files", data.test_files, files);
  return files;
}

std::string Remedy(const std::string& path, int error) {
  absl::string_view rest = path;
  if (error == ENOENT && absl::ConsumePrefix(&rest, kDataSets)) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(rest, '/');
    return absl::StrCat("install the package dataset-", parts.first);
  }
  if (error != ENOENT || absl::StartsWith(path, "/")) {
    return "name a file that can be read";
  }
  std::error_code ignored;
  return absl::StrCat("a relative path begins at ",
                      fs::current_path(ignored).string());
}

absl::Status CheckFile(const NamedFile& file) {
  const std::string path =
      file.is_array ? worker::SplitArrayPath(file.path).file : file.path;
  struct stat info = {};
  int error = 0;
  if (stat(path.c_str(), &info) != 0 || access(path.c_str(), R_OK) != 0) {
    error = errno;
  } else if (S_ISREG(info.st_mode)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.field, " is ", file.path, ": ",
                   error == 0 ? "it is no file" : strerror(error), "; ",
                   Remedy(file.path, error)));
}

absl::Status CheckFiles(const std::vector<NamedFile>& files) {
  for (const NamedFile& file : files) {
    if (!file.path.empty()) LOCKSTEP_RETURN_IF_ERROR(CheckFile(file));
  }
  return absl::OkStatus();
}

// Files of tables are read to be counted if they have at most so many bytes.
constexpr uintmax_t kMostToCount = uintmax_t{16} << 20;

bool AreSmall(const std::vector<std::string>& files) {
  uintmax_t bytes = 0;
  for (const std::string& path : files) {
    std::error_code error;
    const uintmax_t size = fs::file_size(path, error);
    // The worker reports a file that cannot be read.
    if (error || size > kMostToCount) return false;
    bytes += size;
  }
  return bytes <= kMostToCount;
}

std::optional<int64_t> CountExamples(const JobConfig& job) {
  if (!HasTables(job.model)) return worker::CountTrainingExamples(job.data);
  if (!AreSmall(job.data.train_files)) return std::nullopt;
  const absl::StatusOr<std::unique_ptr<worker::TableWorkload>> tables =
      worker::MakeTableWorkload(job, worker::Purpose::kTrain);
  // The worker reports the error.
  if (!tables.ok()) return std::nullopt;
  return (*tables)->num_examples();
}

// Returns the step of the checkpoint from which the job goes on; -1: it begins
// with initial values.
int64_t FirstStep(const std::string& directory, const Beginning& beginning) {
  if (beginning.step >= 0) return beginning.step;
  if (directory.empty() || beginning.step == Beginning::kFresh) return -1;
  const absl::StatusOr<LatestCheckpoint> latest =
      CheckpointStore(directory).Latest();
  // CheckWritable() and the chief report a directory that cannot be read.
  if (!latest.ok() || !latest->manifest.has_value()) return -1;
  return latest->manifest->global_step;
}

absl::Status CheckPrograms(const std::string& kind,
                           const ComputingPrograms& programs) {
  if (kind != kExternalModel) {
    if (!programs.own_workers && !programs.own_evaluator) {
      return worker::CheckModelKind(kind);
    }
    return CheckIsExternal(kind);
  }
  if (!programs.own_workers) {
    return absl::InvalidArgumentError(
        "model.kind is \"external\": the workers of this job are programs of "
        "its user; give their command at the end, as in `lockstep run ... -- "
        "python3 train.py`, or name a model");
  }
  if (programs.has_evaluator && !programs.own_evaluator) {
    return absl::InvalidArgumentError(
        "the cluster has an evaluator, but the built-in one cannot score the "
        "model of a program of yours; give its command, as in --evaluator "
        "'python3 eval.py', or leave the evaluator out of the cluster");
  }
  return absl::OkStatus();
}

// True for "nvidia0", not for "nvidiactl".
bool IsGpu(const std::string& name) {
  absl::string_view rest = name;
  return absl::ConsumePrefix(&rest, "nvidia") && !rest.empty() &&
         std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit);
}

// Checks that the directory has a complete checkpoint of the step, or names
// those that it has.
absl::Status CheckHasStep(const std::string& directory, int64_t step) {
  const std::string flag = absl::StrCat("--from ", step, ": ");
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "the job has no checkpoint.directory"));
  }
  const absl::Status found = ReadCompleteManifest(directory, step).status();
  if (found.ok()) return found;
  if (!absl::IsNotFound(found)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, found.message()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                            ListStepDirectories(directory));
  return absl::InvalidArgumentError(absl::StrCat(
      flag, directory, " has no checkpoint of this step; ",
      steps.empty()
          ? "it has none"
          : absl::StrCat("it has those of ", absl::StrJoin(steps, ", "))));
}

}  // namespace

absl::Status CheckModelAndData(const JobConfig& job,
                               const ComputingPrograms& programs) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPrograms(job.model.kind, programs));
  LOCKSTEP_RETURN_IF_ERROR(CheckFiles(TrainingFiles(job.data)));
  return programs.has_evaluator ? CheckTestSet(job) : absl::OkStatus();
}

absl::Status CheckTestSet(const JobConfig& job) {
  return CheckFiles(TestFiles(job.data));
}

absl::Status CheckBatch(const JobConfig& job, int num_workers) {
  if (job.model.kind == kExternalModel) return absl::OkStatus();
  const std::optional<int64_t> examples = CountExamples(job);
  // The worker explains an empty data set.
  if (examples.value_or(0) < 1) return absl::OkStatus();
  return worker::BatchSchedule::Create(
             worker::ScheduleOf(job, *examples, /*worker=*/0,
                                int64_t{ReplicasPerWorker(job, /*gpus=*/0)} *
                                    (job.elastic_workers ? 1 : num_workers)))
      .status();
}

absl::Status CheckCheckpoints(const JobConfig& job,
                              const Beginning& beginning) {
  const std::string& directory = job.checkpoint.directory;
  if (beginning.step >= 0) {
    LOCKSTEP_RETURN_IF_ERROR(CheckHasStep(directory, beginning.step));
  }
  const NamedFile initial = {"checkpoint.initial_values",
                             job.checkpoint.initial_values};
  const int64_t first = FirstStep(directory, beginning);
  // A job that goes on from a checkpoint does not read them.
  if (!initial.path.empty() && first < 0) {
    LOCKSTEP_RETURN_IF_ERROR(CheckFile(initial));
  }
  if (directory.empty()) return absl::OkStatus();
  // Also of a job that is finished: another one may use its directory.
  const std::optional<std::string> owner = DirectoryOwner::Running(directory);
  if (owner.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint.directory is ", directory, ", in use by the job ", *owner,
        ", which runs; give each job a directory of its own, or wait until "
        "that one has ended"));
  }
  // A finished job writes nothing; its chief reports that.
  if (first >= job.train_steps) return absl::OkStatus();
  const absl::Status writable = CheckpointStore(directory).CheckWritable();
  return writable.ok() ? writable
                       : absl::InvalidArgumentError(writable.message());
}

absl::Status CheckSummaries(const JobConfig& job) {
  const std::string& directory = job.summary.directory;
  if (directory.empty()) return absl::OkStatus();
  const absl::StatusOr<TrialDirectory> trial = TrialDirectory::Make(directory);
  absl::Status writable = trial.status();
  // A directory that was there already need not be one to write to.
  if (writable.ok() && access(directory.c_str(), W_OK | X_OK) != 0) {
    writable = absl::ErrnoToStatus(errno, directory);
  }
  if (writable.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "summary.directory: ", writable.message(),
      "; name a directory that the chief can write to, or leave summary out"));
}

absl::Status CheckGpus(int gpus, const std::string& devices) {
  std::error_code error;
  // Under WSL a GPU has no file of its own; dxg stands for all.
  if (gpus == 0 || fs::exists(absl::StrCat(devices, "/dxg"), error)) {
    return absl::OkStatus();
  }
  int found = 0;
  for (fs::directory_iterator entries(devices, error), end;
       !error && entries != end; entries.increment(error)) {
    if (IsGpu(entries->path().filename().string())) ++found;
  }
  if (found >= gpus) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--gpus is ", gpus, ", but this machine shows ",
                   found == 0 ? "none" : absl::StrCat(found), " (", devices,
                   "/nvidia0 ...); ",
                   found == 0 ? "leave the flag out to compute on the processor"
                              : "give a smaller number"));
}

}  // namespace lockstep::cli
