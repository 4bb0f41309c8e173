#ifndef LOCKSTEP_COMMON_CHECKPOINT_DIRECTORY_OWNER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_DIRECTORY_OWNER_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

// DirectoryOwner marks a directory of checkpoints as one job's during its life,
// so that two jobs cannot write to one directory. The mark is the file ".owner"
// in it, with the job's id, locked (flock); the file stays, and its lock ends
// with the process, also if children that it forked go on.
//
// Two processes of one job may both own it; the servers' epoch fence decides
// between them. The lock is the first one's until it ends, and the other's from
// its next Hold() on.
//
// If the directory is removed and made again meanwhile, as by a checkpoint, the
// next Hold() marks the new one.
//
// Threads: not thread-safe.
class DirectoryOwner {
 public:
  // Creates the directory if it is missing. If that fails, or the file system
  // has no locks, nothing is marked; that is no error.
  //
  // Waits up to `patience` for a process of another job that is about to end.
  //
  //   kFailedPrecondition  a running process holds it for another job; names
  //                        that job
  static absl::StatusOr<DirectoryOwner> Take(
      const std::string& directory, const std::string& job_id,
      absl::Duration patience = absl::ZeroDuration());

  // Takes the lock, if this process does not have it yet because another one of
  // the job had it, or because the mark was removed. Must be called before each
  // checkpoint is written.
  //
  //   kFailedPrecondition  as Take(): another job has come in between
  absl::Status Hold();

  // True if the mark was removed or replaced since this process opened it.
  bool IsGone() const { return lock_ >= 0 && !IsAtItsPath(); }

  // Returns the job of the running process that holds the directory, if the
  // mark names one; nothing if there is none. Changes nothing.
  static std::optional<std::string> Running(const std::string& directory);

  // True if this process sees the mark of any job, also of one that has ended.
  static bool IsMarked(const std::string& directory);

  ~DirectoryOwner();
  DirectoryOwner(DirectoryOwner&& other) noexcept;
  DirectoryOwner& operator=(DirectoryOwner&&) = delete;

 private:
  DirectoryOwner(std::string directory, std::string job_id, int lock);

  bool IsAtItsPath() const;
  // Opens the mark anew if it is no longer the one at its path. If that fails,
  // for example because the volume is away, the old one stays.
  void Reopen();
  void Close();

  std::string directory_;
  std::string job_id_;
  int lock_;           // descriptor of the file, or -1
  bool held_ = false;  // false also on a file system without locks
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_DIRECTORY_OWNER_H_
