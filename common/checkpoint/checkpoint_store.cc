#include "common/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/aside_directory.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/checkpoint/files/sha256.h"
#include "common/checkpoint/files/trial_directory.h"
#include "common/checkpoint/step_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

absl::Status CheckNamed(const std::string& directory) {
  if (!directory.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the checkpoint directory is empty, want a path");
}

absl::Status MakeDirectory(const std::string& directory) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNamed(directory));
  return MakeDirectories(directory);
}

absl::Status VerifyFile(const std::string& path, const CheckpointFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(path));
  if (sha256 == file.sha256) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, ": sha256 is ", sha256, ", the manifest says ",
                   file.sha256, "; the checkpoint is damaged: use another"));
}

std::string Warning(const absl::Status& status) {
  return absl::StrCat("checkpoint passed over: ", status.message());
}

}  // namespace

CheckpointStore::CheckpointStore(std::string directory)
    : directory_(std::move(directory)) {}

absl::Status CheckpointStore::CheckWritable() const {
  const auto try_it = [this]() -> absl::Status {
    LOCKSTEP_RETURN_IF_ERROR(CheckNamed(directory_));
    LOCKSTEP_ASSIGN_OR_RETURN(const TrialDirectory trial,
                              TrialDirectory::Make(directory_));
    LOCKSTEP_ASSIGN_OR_RETURN(AsideDirectory aside,
                              AsideDirectory::Create(directory_, 0));
    // A checkpoint needs all: a written file, a directory renamed into another,
    // and both directories synced. A file system may refuse the last two.
    LOCKSTEP_RETURN_IF_ERROR(
        WriteWholeFile(absl::StrCat(aside.path(), "/trial"), "trial"));
    LOCKSTEP_RETURN_IF_ERROR(SyncDirectory(aside.path()));
    LOCKSTEP_ASSIGN_OR_RETURN(const AsideDirectory other,
                              AsideDirectory::Create(directory_, 0));
    const std::string target = absl::StrCat(other.path(), "/moved");
    LOCKSTEP_RETURN_IF_ERROR(aside.MoveTo(target));
    return SyncNames();
  };
  const absl::Status tried = try_it();
  if (tried.ok()) return tried;
  return absl::Status(
      tried.code(),
      absl::StrCat("checkpoint.directory: ", tried.message(),
                   "; name a directory that the chief may write to"));
}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointStore::Begin(
    int64_t step, const CheckpointTensors& tensors) const {
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectory(directory_));
  return CheckpointWriter::Create(directory_, step, tensors);
}

absl::StatusOr<LatestCheckpoint> CheckpointStore::Latest() const {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int64_t> steps,
                            ListStepDirectories(directory_));
  LatestCheckpoint latest;
  for (; !steps.empty(); steps.pop_back()) {
    absl::StatusOr<Manifest> manifest =
        ReadCompleteManifest(directory_, steps.back());
    if (manifest.ok()) {
      latest.manifest = *std::move(manifest);
      break;
    }
    // A newer version of Lockstep wrote it. To pass over it would silently
    // resume at an older step.
    if (absl::IsFailedPrecondition(manifest.status())) {
      return manifest.status();
    }
    latest.warnings.push_back(Warning(manifest.status()));
  }
  return latest;
}

absl::StatusOr<CheckpointReader> CheckpointStore::Open(int64_t step) const {
  return CheckpointReader::Open(directory_, step);
}

absl::StatusOr<CheckpointReader> CheckpointStore::OpenLatest() const {
  LOCKSTEP_ASSIGN_OR_RETURN(const LatestCheckpoint latest, Latest());
  if (latest.manifest.has_value()) return Open(latest.manifest->global_step);
  if (!latest.warnings.empty()) {
    return absl::DataLossError(
        absl::StrCat("none of the ", latest.warnings.size(), " checkpoints in ",
                     directory_, " is complete; ", latest.warnings.front()));
  }
  return absl::NotFoundError(
      absl::StrCat("there is no checkpoint in ", directory_,
                   "; give the checkpoint.directory of a job"));
}

absl::Status CheckpointStore::Verify(int64_t step) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader reader, Open(step));
  const fs::path place = fs::path(directory_) / StepDirectoryName(step);
  // Open() has compared sizes; only the digest shows changed bytes.
  for (const CheckpointFile& file : reader.manifest().files) {
    LOCKSTEP_RETURN_IF_ERROR(VerifyFile((place / file.name).string(), file));
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::SyncNames() const {
  return SyncDirectory(directory_);
}

absl::StatusOr<std::vector<int64_t>> CheckpointStore::StepsToRemove(
    int64_t keep, const std::function<absl::Status(int64_t)>& check) const {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int64_t> steps,
                            ListStepDirectories(directory_));
  std::vector<int64_t> older;
  for (; !steps.empty(); steps.pop_back()) {
    // Goes from new to old: the first `keep` good checkpoints stay, and
    // everything damaged between them stays too, for a person to examine.
    const bool enough = keep == 0;
    const absl::Status found =
        check && !enough
            ? check(steps.back())
            : ReadCompleteManifest(directory_, steps.back()).status();
    if (found.ok() && !enough) --keep;
    // Any other error may be temporary, or a newer version's checkpoint: both
    // stay.
    if (enough && (found.ok() || absl::IsDataLoss(found))) {
      older.push_back(steps.back());
    }
  }
  std::reverse(older.begin(), older.end());
  return older;
}

absl::StatusOr<std::vector<int64_t>> CheckpointStore::Prune(
    int64_t keep, const std::function<absl::Status(int64_t)>& check) const {
  if (keep < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("keep is ", keep, ", want at least 1"));
  }
  // Returned at the end: what cannot be removed must not keep old checkpoints,
  // which would fill the disk.
  const absl::Status swept = RemoveStaleAsides(directory_);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                            StepsToRemove(keep, check));
  for (int64_t step : steps) {
    // Renamed first, so that no reader finds a half-removed checkpoint.
    LOCKSTEP_ASSIGN_OR_RETURN(const AsideDirectory trash,
                              AsideDirectory::Create(directory_, step));
    const std::string name = StepDirectoryName(step);
    std::error_code error;
    fs::rename(fs::path(directory_) / name, fs::path(trash.path()) / name,
               error);
    if (error) {
      return SystemError(error.value(), absl::StrCat(directory_, "/", name,
                                                     ": cannot remove it"));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(swept);
  return steps;
}

absl::StatusOr<std::string> CheckpointStore::SetAside(
    int64_t step, absl::string_view prefix) const {
  const std::string name = StepDirectoryName(step);
  std::string target = absl::StrCat(directory_, "/", prefix, name);
  std::error_code error;
  // symlink_status() also finds a dangling link, onto which rename() could not
  // move a directory.
  for (int number = 2; fs::exists(fs::symlink_status(target, error));
       ++number) {
    target = absl::StrCat(directory_, "/", prefix, name, "-", number);
  }
  const fs::path place = fs::path(directory_) / name;
  fs::rename(place, target, error);
  if (!error) return target;
  return SystemError(error.value(),
                     absl::StrCat(place.string(), ": cannot set it aside"));
}

absl::Status CheckpointStore::RemoveUnfinished() const {
  return RemoveAllAsides(directory_);
}

}  // namespace lockstep
