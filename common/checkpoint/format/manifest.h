#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_MANIFEST_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

inline constexpr int64_t kManifestFormatVersion = 1;
inline constexpr size_t kMaxManifestBytes = 1 << 20;

// One file that belongs to a checkpoint.
struct CheckpointFile {
  std::string name;  // letters, digits, '-', '_', '.'; no leading '.'
  uint64_t bytes = 0;
  std::string sha256;  // 64 lower-case hex digits

  bool operator==(const CheckpointFile&) const = default;
};

// Manifest identifies the job and step of a checkpoint and lists its files.
// With seed, mode, global step and number of workers, a resumed job continues
// with the data that an undisturbed one would have used.
struct Manifest {
  std::string job_name;  // not empty
  std::string job_id;    // of the run that wrote it
  int64_t global_step = 0;
  uint64_t seed = 0;
  std::string mode;  // "strict" or "compatible"
  int64_t num_workers = 0;
  int64_t saved_at_unix_ms = 0;
  std::vector<CheckpointFile> files;      // at least one, names unique
  std::map<std::string, double> metrics;  // finite; may be empty
  // Settings that were changed while the job ran; finite; may be empty.
  std::map<std::string, double> settings;

  bool operator==(const Manifest&) const = default;
};

// Returns JSON with a newline at the end, which ParseManifest() accepts.
//
//   kInvalidArgument  names the field, its value and the allowed range
absl::StatusOr<std::string> EncodeManifest(const Manifest& manifest);

// Ignores unknown fields, so that later versions can add fields.
//
//   kInvalidArgument     not JSON, too long, or names the field, its value and
//                        the allowed range
//   kFailedPrecondition  a newer format version: use a newer program
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_MANIFEST_H_
