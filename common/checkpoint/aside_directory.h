#ifndef LOCKSTEP_COMMON_CHECKPOINT_ASIDE_DIRECTORY_H_
#define LOCKSTEP_COMMON_CHECKPOINT_ASIDE_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// AsideDirectory is a directory that readers ignore, for contents not yet or no
// longer valid: ".tmp-step-00001500-5f0c9a1e77b2d348". It is locked (flock)
// during the object's life, so that other processes can tell it from a
// directory that a killed process left behind. The lock ends with this process,
// also if children that it forked go on. Names are never reused: a process
// whose directory was removed cannot mistake another one for it.
//
// Threads: not thread-safe.
// Owns:    the directory and all its contents; the destructor removes them.
// Errors:  messages have the path and the system's own text.
class AsideDirectory {
 public:
  // Creates one in `parent`, with `step` in its name. Errors: the system's.
  static absl::StatusOr<AsideDirectory> Create(const std::string& parent,
                                               int64_t step);

  AsideDirectory(AsideDirectory&& other) noexcept;
  AsideDirectory& operator=(AsideDirectory&&) = delete;
  ~AsideDirectory();

  const std::string& path() const { return path_; }

  // Renames it atomically to `target` in the same file system, which must not
  // exist or must be an empty directory. Afterwards it is no longer aside.
  absl::Status MoveTo(const std::string& target);

 private:
  AsideDirectory(std::string path, int lock);

  std::string path_;  // empty after MoveTo()
  int lock_;          // descriptor of the directory, or -1
};

// Removes the directories of killed processes in `parent`, and keeps those that
// a live process has locked. On file systems without flock it removes both.
//
// Errors: the system's, the first one; the other directories are removed all
//         the same
absl::Status RemoveStaleAsides(const std::string& parent);

// Removes all aside directories in `parent`, also those of live processes,
// whose MoveTo() then fails. Errors: as RemoveStaleAsides().
absl::Status RemoveAllAsides(const std::string& parent);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_ASIDE_DIRECTORY_H_
