#ifndef LOCKSTEP_COMMON_PROCESS_PRIVATE_DIRECTORY_H_
#define LOCKSTEP_COMMON_PROCESS_PRIVATE_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// PrivateDirectory is an open directory that only this user (and root) can
// enter, so that no other user can create or remove files in it. Paths opened
// relative to fd() are in this very directory, even if its path changes.
//
// Threads: immutable.
class PrivateDirectory {
 public:
  // Opens a directory. The last part of `path` must be the directory itself,
  // not a link to it, even for root.
  //
  //   kNotFound          there is none
  //   kPermissionDenied  it is a link, belongs to another user, gives rights to
  //                      others, or cannot be entered; says which
  //   kInvalidArgument   no directory
  static absl::StatusOr<PrivateDirectory> Open(const std::string& path);

  // As Open(), but creates the directory with mode 0700 if only the last part
  // of the path is missing.
  //
  //   also the system's errors of creating a directory
  static absl::StatusOr<PrivateDirectory> OpenOrMake(const std::string& path);

  ~PrivateDirectory();
  PrivateDirectory(PrivateDirectory&& other) noexcept;
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  int fd() const { return fd_; }

  // Checks that files can be created in it now.
  //
  //   kPermissionDenied, or another error of the system
  absl::Status CheckWritable() const;

 private:
  PrivateDirectory(std::string path, int fd)
      : path_(std::move(path)), fd_(fd) {}

  absl::Status Check() const;

  std::string path_;
  int fd_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_PRIVATE_DIRECTORY_H_
