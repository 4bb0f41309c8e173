#include "deploy/cli/run/state_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/private_directory.h"

namespace lockstep::cli {
namespace {

constexpr char kPrefix[] = "lockstep-run-";
constexpr char kLockName[] = "lock";
constexpr mode_t kPrivate = 0700;

absl::Status Refused(const std::string& path, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", what, ": ", strerror(errno),
                   "; name another directory with --state_dir"));
}

// O_CLOEXEC: a lock of flock() lasts as long as any process has the descriptor,
// and tasks must not keep it.
int OpenLock(const PrivateDirectory& directory, int flags) {
  return openat(directory.fd(), kLockName,
                O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

// A rest is left to a later run, which sweeps.
void RemoveAll(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// A directory gets its final name only when its lock is held; so if a directory
// of that name has a free lock, or none, its owner has ended.
void RemoveIfStale(const std::string& path) {
  const auto directory = PrivateDirectory::Open(path);
  if (!directory.ok()) return;  // not from a launcher of this user
  const int fd = OpenLock(*directory, 0);
  if (fd < 0 && errno != ENOENT) return;
  // Without a lock file, the owner was killed while it removed the directory.
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) RemoveAll(path);
  if (fd >= 0) close(fd);
}

void Sweep(const std::string& parent) {
  std::error_code error;
  std::filesystem::directory_iterator entries(parent, error);
  for (; !error && entries != std::filesystem::directory_iterator();
       entries.increment(error)) {
    if (absl::StartsWith(entries->path().filename().string(), kPrefix)) {
      RemoveIfStale(entries->path().string());
    }
  }
}

// Locks the file and returns its descriptor.
absl::StatusOr<int> Lock(const std::string& path) {
  const auto directory = PrivateDirectory::Open(path);
  if (!directory.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--state_dir: ", directory.status().message()));
  }
  const int fd = OpenLock(*directory, O_CREAT);
  if (fd < 0) return Refused(path, "no lock file can be made in it");
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      ": another run uses this directory; wait for its end or name "
      "another one with --state_dir"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateDirectory>> StateDirectory::CreateIn(
    const std::string& parent) {
  Sweep(parent);
  // Sweeps ignore a name with a dot, so no one removes it before it is locked.
  std::string hidden = absl::StrCat(parent, "/.", kPrefix, "XXXXXX");
  if (mkdtemp(hidden.data()) == nullptr) {
    return Refused(parent, "no directory can be made in it");
  }
  const absl::StatusOr<int> lock = Lock(hidden);
  const std::string path = absl::StrCat(
      parent, "/", kPrefix, hidden.substr(hidden.size() - 6), "-", getpid());
  if (!lock.ok() || rename(hidden.c_str(), path.c_str()) != 0) {
    const absl::Status status =
        lock.ok() ? Refused(path, "it cannot be made") : lock.status();
    if (lock.ok()) close(*lock);
    RemoveAll(hidden);
    return status;
  }
  return std::unique_ptr<StateDirectory>(
      new StateDirectory(path, *lock, /*remove=*/true));
}

absl::StatusOr<std::unique_ptr<StateDirectory>> StateDirectory::Adopt(
    const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent =
      std::filesystem::path(path).parent_path();
  // A failure shows in mkdir(), which says why.
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(path.c_str(), kPrivate) != 0 && errno != EEXIST) {
    return Refused(path, "it cannot be made");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int lock, Lock(path));
  return std::unique_ptr<StateDirectory>(
      new StateDirectory(path, lock, /*remove=*/false));
}

std::string StateDirectory::DefaultParent() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  const char* temporary = getenv("TMPDIR");
  return temporary == nullptr || *temporary == '\0' ? "/tmp" : temporary;
}

StateDirectory::~StateDirectory() {
  if (remove_) RemoveAll(path_);
  // Last, so that no sweep removes the directory at the same time.
  close(lock_fd_);
}

absl::Status StateDirectory::MakeChild(const std::string& child_path) const {
  if (mkdir(child_path.c_str(), kPrivate) != 0 && errno != EEXIST) {
    return Refused(child_path, "it cannot be made");
  }
  return absl::OkStatus();
}

}  // namespace lockstep::cli
