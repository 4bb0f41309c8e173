#include "common/process/private_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr mode_t kOwnerOnly = 0700;
constexpr mode_t kRightsOfOthers = 077;

// Removes slashes at the end, because with them the system would follow a link.
std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

absl::StatusOr<PrivateDirectory> PrivateDirectory::Open(
    const std::string& path) {
  const std::string plain = WithoutSlashes(path);
  // Everything below works on this descriptor, so the path cannot be exchanged
  // between check and use.
  const int fd =
      open(plain.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    // lstat() may change errno.
    const int error = errno;
    struct stat info;
    const bool link = lstat(plain.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
    if (link) {
      return absl::PermissionDeniedError(absl::StrCat(
          path, " is a link, which may come to lead elsewhere; name the ",
          "directory itself"));
    }
    if (error == ENOTDIR) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is no directory; name one"));
    }
    return absl::ErrnoToStatus(error, absl::StrCat("cannot open ", path));
  }
  PrivateDirectory directory(path, fd);
  LOCKSTEP_RETURN_IF_ERROR(directory.Check());
  return directory;
}

absl::StatusOr<PrivateDirectory> PrivateDirectory::OpenOrMake(
    const std::string& path) {
  // Another process may have made it; Open() checks whose it is.
  if (mkdir(path.c_str(), kOwnerOnly) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot make directory ", path));
  }
  return Open(path);
}

PrivateDirectory::PrivateDirectory(PrivateDirectory&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

PrivateDirectory::~PrivateDirectory() {
  if (fd_ >= 0) close(fd_);
}

absl::Status PrivateDirectory::Check() const {
  struct stat info;
  if (fstat(fd_, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path_));
  }
  if (info.st_uid != geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(
        path_, " belongs to user ", info.st_uid, ", and this is user ",
        geteuid(), ": name a directory of this user, or one in it that is ",
        "still to be made, as ", path_, "/state"));
  }
  if ((info.st_mode & kRightsOfOthers) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path_, " has mode ", absl::StrFormat("%04o", info.st_mode & 07777),
        ", so that others have a hand in it: chmod 700 ", path_,
        ", or name one in it that is still to be made"));
  }
  return absl::OkStatus();
}

absl::Status PrivateDirectory::CheckWritable() const {
  // By the effective user, as access() would use the real one.
  if (faccessat(fd_, ".", W_OK | X_OK, AT_EACCESS) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("no file can be made in ", path_));
}

}  // namespace lockstep
