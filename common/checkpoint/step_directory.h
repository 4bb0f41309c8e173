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
// complete when the manifest is sound, is of that step, and every file that it
// lists has the length that it says.
namespace lockstep {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kManifestFile[] = "manifest.json";

// "step-00001500"; more than eight digits when the step needs them.
std::string StepDirectoryName(int64_t step);

// The step, if `name` is exactly what StepDirectoryName() makes of it.
std::optional<int64_t> ParseStepDirectoryName(absl::string_view name);

// The steps that have a directory, complete or not, in ascending order. A
// missing `directory` holds none.
//
//   and what the system reports when it cannot be listed
absl::StatusOr<std::vector<int64_t>> ListStepDirectories(
    const std::string& directory);

// The manifest of the complete checkpoint of `step` in `directory`. Contents
// of the other files are not read.
//
//   kNotFound            no directory for this step
//   kDataLoss            not complete; names file, field, value and what to do
//   kFailedPrecondition  of a newer format version
//   and what PosixFile reports
absl::StatusOr<Manifest> ReadCompleteManifest(const std::string& directory,
                                              int64_t step);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_STEP_DIRECTORY_H_
