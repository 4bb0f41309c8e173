#ifndef LOCKSTEP_COMMON_CHECKPOINT_DIRECTORY_OWNER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_DIRECTORY_OWNER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

// DirectoryOwner marks a directory of checkpoints as one job's as long as it
// lives, so that two jobs do not write theirs into each other's. The mark is
// the file ".owner" in it, with the job's id, locked (flock); the file stays,
// its lock ends with the process.
//
// Two processes of the same job may both have one: which of them is the newer,
// its servers know.
class DirectoryOwner {
 public:
  // Makes the directory where it is missing. Where that cannot be, or the file
  // system has no locks, nothing is marked; that is no error.
  //
  // A process of another job that is about to end is given `patience`.
  //
  //   kFailedPrecondition  a running process has it for another job; names that
  static absl::StatusOr<DirectoryOwner> Take(
      const std::string& directory, const std::string& job_id,
      absl::Duration patience = absl::ZeroDuration());

  // The job of a running process that has the directory, as far as the mark
  // tells; nothing if there is none. Changes nothing.
  static std::optional<std::string> Running(const std::string& directory);

  ~DirectoryOwner();
  DirectoryOwner(DirectoryOwner&& other) noexcept;
  DirectoryOwner& operator=(DirectoryOwner&&) = delete;

 private:
  explicit DirectoryOwner(int lock) : lock_(lock) {}

  int lock_;  // descriptor of the file, or -1
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_DIRECTORY_OWNER_H_
