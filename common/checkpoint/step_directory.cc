#include "common/checkpoint/step_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "step-";

absl::Status Damaged(const fs::path& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      path.string(), ": ", what, "; the checkpoint is damaged: use another"));
}

absl::StatusOr<Manifest> ReadManifestFile(const fs::path& path) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(path.string(), kMaxManifestBytes);
  // The caller has seen the directory, so a missing manifest is damage and not
  // an absent checkpoint.
  if (absl::IsNotFound(text.status())) return Damaged(path, "is missing");
  // Or the path is something else than a directory.
  if (absl::IsInvalidArgument(text.status()) ||
      absl::IsFailedPrecondition(text.status())) {
    return Damaged(path, "is not a file of a manifest's size");
  }
  LOCKSTEP_RETURN_IF_ERROR(text.status());
  absl::StatusOr<Manifest> manifest = ParseManifest(*text);
  if (absl::IsInvalidArgument(manifest.status())) {
    return Damaged(path, manifest.status().message());
  }
  // Other errors keep their code: kFailedPrecondition means a newer version.
  if (manifest.ok()) return manifest;
  return absl::Status(
      manifest.status().code(),
      absl::StrCat(path.string(), ": ", manifest.status().message()));
}

// The error of a stat() that did not find out whether a file is damaged.
absl::Status Unexamined(int error, const fs::path& path) {
  const absl::Status status =
      SystemError(error, absl::StrCat(path.string(), ": cannot examine it"));
  // In WholeCheckpoints, the codes of ENODEV and the like count as damage, and
  // that of EIO if it lasts, but storage over a network returns them for a
  // while, too.
  if (absl::IsUnknown(status) || absl::IsNotFound(status) ||
      absl::IsInvalidArgument(status)) {
    return absl::UnavailableError(status.message());
  }
  return status;
}

absl::Status CheckSize(const fs::path& path, uint64_t wanted) {
  struct stat about = {};
  if (stat(path.c_str(), &about) != 0) {
    const int error = errno;
    switch (error) {
      case ENOENT:
      case ENOTDIR:
        return Damaged(path, "is missing");
      case ELOOP:
      case ENAMETOOLONG:
        return Damaged(path, "is no name of a file");
      default:
        return Unexamined(error, path);
    }
  }
  if (!S_ISREG(about.st_mode)) return Damaged(path, "is not a regular file");
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size == wanted) return absl::OkStatus();
  return Damaged(
      path, absl::StrCat("has ", size, " bytes, the manifest says ", wanted));
}

absl::Status CheckLists(const Manifest& manifest, const fs::path& path,
                        absl::string_view name) {
  for (const CheckpointFile& file : manifest.files) {
    if (file.name == name) return absl::OkStatus();
  }
  return Damaged(path, absl::StrCat("files lacks ", name));
}

}  // namespace

std::string StepDirectoryName(int64_t step) {
  return absl::StrFormat("%s%08d", kPrefix, step);
}

std::optional<int64_t> ParseStepDirectoryName(absl::string_view name) {
  int64_t step = 0;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, kPrefix) ||
      !absl::SimpleAtoi(digits, &step) || step < 0 ||
      // Compares with the name that this program writes: "step-5" and
      // "step-+0000005" are not checkpoints, although they parse.
      StepDirectoryName(step) != name) {
    return std::nullopt;
  }
  return step;
}

absl::StatusOr<std::vector<int64_t>> ListStepDirectories(
    const std::string& directory) {
  std::vector<int64_t> steps;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  if (error == std::errc::no_such_file_or_directory) return steps;
  // increment() sets the iterator to the end on an error, so `error` is checked
  // after the loop too.
  while (!error && entry != fs::directory_iterator()) {
    const std::string name = entry->path().filename().string();
    if (auto step = ParseStepDirectoryName(name)) steps.push_back(*step);
    entry.increment(error);
  }
  if (error) {
    return SystemError(
        error.value(),
        absl::StrCat(directory,
                     ": cannot list checkpoints; name a directory that this "
                     "process may read and write"));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::StatusOr<Manifest> ReadCompleteManifest(const std::string& directory,
                                              int64_t step) {
  const fs::path place = fs::path(directory) / StepDirectoryName(step);
  std::error_code error;
  // An error here is no answer; ReadManifestFile() reports it.
  if (!fs::exists(place, error) && !error) {
    return absl::NotFoundError(absl::StrCat(
        place.string(), ": there is no checkpoint of step ", step));
  }
  const fs::path path = place / kManifestFile;
  LOCKSTEP_ASSIGN_OR_RETURN(Manifest manifest, ReadManifestFile(path));
  // A person may have copied or renamed a directory.
  if (manifest.global_step != step) {
    return Damaged(
        path, absl::StrCat("global_step is ", manifest.global_step, ", want ",
                           step, " as the directory's name"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckLists(manifest, path, kModelFile));
  LOCKSTEP_RETURN_IF_ERROR(CheckLists(manifest, path, kOptimizerFile));
  for (const CheckpointFile& file : manifest.files) {
    LOCKSTEP_RETURN_IF_ERROR(CheckSize(place / file.name, file.bytes));
  }
  return manifest;
}

std::string FileMetadata(const std::string& path) {
  std::string files;
  for (const char* name : {kModelFile, kOptimizerFile, kManifestFile}) {
    struct stat about = {};
    const std::string file = absl::StrCat(path, "/", name);
    // A missing file counts as zeros: the text then differs from that of any
    // file.
    if (stat(file.c_str(), &about) != 0) about = {};
    // The change time is set by the kernel alone, so it also shows a write
    // after which someone set the modification time back.
    absl::StrAppend(&files, about.st_ino, " ", about.st_size, " ",
                    about.st_mtim.tv_sec, ".", about.st_mtim.tv_nsec, " ",
                    about.st_ctim.tv_sec, ".", about.st_ctim.tv_nsec, "\n");
  }
  return files;
}

}  // namespace lockstep
