#include "common/checkpoint/checkpoint_writer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/checkpoint/files/sha256.h"
#include "common/checkpoint/step_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string Join(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

absl::Status CheckDisjoint(const CheckpointTensors& tensors) {
  // CheckpointReader::FileOf() finds a tensor by its name alone, so a name must
  // not be in both files.
  absl::flat_hash_set<absl::string_view> names;
  for (const TensorSpec& tensor : tensors.model) names.insert(tensor.name);
  for (const TensorSpec& tensor : tensors.optimizer) {
    if (!names.contains(tensor.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        DescribeTensor(tensor),
        " is in the model and in the optimizer: give each its own name"));
  }
  return absl::OkStatus();
}

// OK if the place is free or holds a damaged checkpoint.
absl::Status CheckReplaceable(const std::string& directory, int64_t step) {
  absl::Status found = ReadCompleteManifest(directory, step).status();
  if (absl::IsNotFound(found) || absl::IsDataLoss(found)) {
    return absl::OkStatus();
  }
  if (!found.ok()) return found;
  return absl::AlreadyExistsError(
      absl::StrCat(directory, ": the checkpoint of step ", step,
                   " is there already and complete"));
}

absl::StatusOr<CheckpointFile> Describe(const SafetensorsWriter& file,
                                        const char* name) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string sha256, Sha256OfFile(file.path()));
  const SafetensorsHeader& header = file.header();
  return CheckpointFile{name, header.data_start + header.data_bytes,
                        std::move(sha256)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(
    const std::string& directory, int64_t step,
    const CheckpointTensors& tensors) {
  if (step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("step is ", step, ", want at least 0"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckDisjoint(tensors));
  // Checked before any byte is written, and again in Publish().
  LOCKSTEP_RETURN_IF_ERROR(CheckReplaceable(directory, step));
  LOCKSTEP_ASSIGN_OR_RETURN(AsideDirectory aside,
                            AsideDirectory::Create(directory, step));
  const std::map<std::string, std::string> metadata = {
      {"format", "lockstep"}, {"global_step", absl::StrCat(step)}};
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto model, SafetensorsWriter::Create(Join(aside.path(), kModelFile),
                                            tensors.model, metadata));
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto optimizer,
      SafetensorsWriter::Create(Join(aside.path(), kOptimizerFile),
                                tensors.optimizer, metadata));
  return std::unique_ptr<CheckpointWriter>(
      new CheckpointWriter(directory, step, std::move(aside), std::move(model),
                           std::move(optimizer)));
}

CheckpointWriter::CheckpointWriter(std::string directory, int64_t step,
                                   AsideDirectory aside,
                                   std::unique_ptr<SafetensorsWriter> model,
                                   std::unique_ptr<SafetensorsWriter> optimizer)
    : directory_(std::move(directory)),
      step_(step),
      aside_(std::move(aside)),
      model_(std::move(model)),
      optimizer_(std::move(optimizer)) {}

absl::Status CheckpointWriter::Commit(Manifest manifest) {
  if (committed_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint of step ", step_, " is committed"));
  }
  // The order is a promise: all bytes of the files are on the disk before the
  // manifest that names their digests, and the manifest before the final name.
  LOCKSTEP_RETURN_IF_ERROR(FinishFiles());
  LOCKSTEP_RETURN_IF_ERROR(WriteManifest(std::move(manifest)));
  // Taken before the rename: afterwards another process may have changed the
  // files.
  files_ = FileMetadata(aside_.path());
  return Publish();
}

absl::Status CheckpointWriter::FinishFiles() {
  if (!finished_.empty()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(model_->Finish());
  LOCKSTEP_RETURN_IF_ERROR(optimizer_->Finish());
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointFile model,
                            Describe(*model_, kModelFile));
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointFile optimizer,
                            Describe(*optimizer_, kOptimizerFile));
  finished_ = {std::move(model), std::move(optimizer)};
  // Some file systems rename no directory in which a file is open.
  model_.reset();
  optimizer_.reset();
  return absl::OkStatus();
}

absl::Status CheckpointWriter::WriteManifest(Manifest manifest) const {
  manifest.global_step = step_;
  manifest.files = finished_;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, EncodeManifest(manifest));
  const std::string path = Join(aside_.path(), kManifestFile);
  std::error_code ignored;  // left by a Commit() that failed after this point
  fs::remove(path, ignored);
  LOCKSTEP_RETURN_IF_ERROR(WriteWholeFile(path, text));
  // The manifest makes a checkpoint complete, so its name must be on the disk
  // before the directory appears.
  return SyncDirectory(aside_.path());
}

absl::Status CheckpointWriter::Publish() {
  // Another process may have completed the step since Create().
  LOCKSTEP_RETURN_IF_ERROR(CheckReplaceable(directory_, step_));
  const std::string target = Join(directory_, StepDirectoryName(step_));
  // A directory with contents cannot be replaced by rename(), so the damaged
  // checkpoint moves into a second aside directory first, which removes it.
  LOCKSTEP_ASSIGN_OR_RETURN(const AsideDirectory trash,
                            AsideDirectory::Create(directory_, step_));
  const std::string damaged = Join(trash.path(), "damaged");
  std::error_code error;
  const bool replaces = fs::is_directory(target, error);
  if (replaces) fs::rename(target, damaged, error);
  if (replaces && error) {
    return SystemError(
        error.value(),
        absl::StrCat(target, ": cannot move the damaged checkpoint away"));
  }
  // A crash between the two renames leaves no checkpoint of this step; the
  // replaced one was damaged, so an older one was the newest good one anyway.
  PassFaultPoint(FaultPoint::kChiefRenameBefore);
  if (absl::Status moved = aside_.MoveTo(target); !moved.ok()) {
    // Puts the damaged one back, so that the failure has changed nothing.
    if (replaces) fs::rename(damaged, target, error);
    return moved;
  }
  PassFaultPoint(FaultPoint::kChiefRenameAfter);
  // Committed even if the sync below fails: the name is visible, and a second
  // Commit() would find a complete checkpoint in its place.
  committed_ = true;
  return SyncDirectory(directory_);
}

}  // namespace lockstep
