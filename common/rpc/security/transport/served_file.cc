#include "common/rpc/security/transport/served_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

// Returns a new file in memory with these contents, changed at `changed`.
absl::StatusOr<int> NewFile(absl::string_view contents, std::time_t changed) {
  const int fd = memfd_create("lockstep_tls", MFD_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot make a memory file");
  // gRPC compares the time of change to notice new contents, so each file gets
  // another one.
  const timespec times[2] = {{changed, 0}, {changed, 0}};
  const ssize_t written = write(fd, contents.data(), contents.size());
  if (written != static_cast<ssize_t>(contents.size()) ||
      futimens(fd, times) != 0) {
    const int error = errno;
    close(fd);
    return absl::ErrnoToStatus(error, "cannot fill a memory file");
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedFile>> ServedFile::Make(
    absl::string_view contents) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int fd, NewFile(contents, 1));
  return std::unique_ptr<ServedFile>(new ServedFile(fd));
}

ServedFile::ServedFile(int fd)
    : fd_(fd), path_(absl::StrCat("/proc/self/fd/", fd)) {}

ServedFile::~ServedFile() { close(fd_); }

absl::Status ServedFile::Replace(absl::string_view contents) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int next, NewFile(contents, ++changed_));
  // Atomic: a reader that opens the path finds the old file or the new one.
  const int moved = dup3(next, fd_, O_CLOEXEC);
  const int error = errno;
  close(next);
  if (moved < 0) return absl::ErrnoToStatus(error, "cannot replace a file");
  return absl::OkStatus();
}

}  // namespace lockstep
