#ifndef LOCKSTEP_COMMON_CHECKPOINT_ASIDE_DIRECTORY_H_
#define LOCKSTEP_COMMON_CHECKPOINT_ASIDE_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// AsideDirectory is a directory that no reader looks into, for things not yet
// or no longer valid: ".tmp-step-00001500-5f0c9a1e77b2d348". It is locked
// (flock) while this object lives, so that others can tell work in progress
// from what a killed process left behind. No name is ever used twice: whoever
// finds its directory gone cannot take another one for it.
//
// Owns:    the directory and all in it; the destructor removes them.
// Errors:  messages have the path and the system's own text.
class AsideDirectory {
 public:
  // Errors: what the system reports
  static absl::StatusOr<AsideDirectory> Create(const std::string& parent,
                                               int64_t step);

  AsideDirectory(AsideDirectory&& other) noexcept;
  AsideDirectory& operator=(AsideDirectory&&) = delete;
  ~AsideDirectory();

  const std::string& path() const { return path_; }

  // Renames it, in one go, to `target` of the same file system, which must not
  // exist or be an empty directory. After that it is no longer aside.
  absl::Status MoveTo(const std::string& target);

 private:
  AsideDirectory(std::string path, int lock);

  std::string path_;  // empty when moved
  int lock_;          // descriptor of the directory, or -1
};

// Removes what killed processes left in `parent`; leaves alone what a living
// one is working on. File systems without flock make no such difference.
absl::Status RemoveStaleAsides(const std::string& parent);

// Removes all, also what a living process is working on: its MoveTo() fails
// from now on.
absl::Status RemoveAllAsides(const std::string& parent);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_ASIDE_DIRECTORY_H_
