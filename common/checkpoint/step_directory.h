#ifndef LOCKSTEP_COMMON_CHECKPOINT_STEP_DIRECTORY_H_
#define LOCKSTEP_COMMON_CHECKPOINT_STEP_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/format/manifest.h"

// A checkpoint is a directory "step-00001500" of these three files. It is
// complete if the manifest is valid, has the directory's step, and every listed
// file has the listed length.
namespace lockstep {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kManifestFile[] = "manifest.json";

// Returns "step-00001500"; with more than eight digits if necessary.
std::string StepDirectoryName(int64_t step);

// Returns the step if StepDirectoryName() of it is exactly `name`.
std::optional<int64_t> ParseStepDirectoryName(absl::string_view name);

// Returns the steps that have a directory, complete or not, ascending. A
// missing `directory` has none.
//
//   and the system's errors of listing a directory
absl::StatusOr<std::vector<int64_t>> ListStepDirectories(
    const std::string& directory);

// Returns the metadata of a checkpoint's files in the directory `path`: inode,
// size and times, which change with the files, and not when the directory gets
// another name.
std::string FileMetadata(const std::string& path);

// Returns the manifest of the complete checkpoint of `step` in `directory`. The
// other files are not read.
//
//   kNotFound            no directory for this step
//   kDataLoss            not complete; names file, field, value and fix
//   kFailedPrecondition  a newer format version
//   and the errors of PosixFile, and of the system where a file cannot be
//   examined, which may be temporary
absl::StatusOr<Manifest> ReadCompleteManifest(const std::string& directory,
                                              int64_t step);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_STEP_DIRECTORY_H_
