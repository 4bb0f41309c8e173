#ifndef LOCKSTEP_COMMON_PROCESS_PRIVATE_DIRECTORY_H_
#define LOCKSTEP_COMMON_PROCESS_PRIVATE_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// PrivateDirectory is a directory that is open, and that nobody but this user
// (and root) can enter, so that nobody else gives names to files in it, or
// takes them away. What is opened relative to fd() is in this very directory,
// whatever becomes of its path.
class PrivateDirectory {
 public:
  // The last part of the path must be the directory itself, and no link to it.
  // That holds for root, too.
  //
  //   kNotFound          there is none
  //   kPermissionDenied  it is a link, belongs to another user, gives rights to
  //                      others, or cannot be entered; says which
  //   kInvalidArgument   no directory
  static absl::StatusOr<PrivateDirectory> Open(const std::string& path);

  // As Open(); makes it with mode 0700 if only the last part of the path is
  // missing.
  //
  //   and what the system says where it cannot be made
  static absl::StatusOr<PrivateDirectory> OpenOrMake(const std::string& path);

  ~PrivateDirectory();
  PrivateDirectory(PrivateDirectory&& other) noexcept;
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  int fd() const { return fd_; }

  // Whether files can be made in it now.
  //
  //   kPermissionDenied, or what else the system says
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
