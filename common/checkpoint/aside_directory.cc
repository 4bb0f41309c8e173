#include "common/checkpoint/aside_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/checkpoint/step_directory.h"
#include "common/process/forked_children.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = ".tmp-step-";
constexpr mode_t kMode = 0750;  // the mode of MakeDirectories()

absl::Status Error(const std::error_code& error, const std::string& path,
                   absl::string_view act) {
  return SystemError(error.value(), absl::StrCat(path, ": cannot ", act));
}

struct Lock {
  int fd = -1;
  bool taken = false;  // another process holds the lock
};

// Releases the lock.
void Close(int fd) {
  KeepInChildren(fd);
  close(fd);
}

Lock TryLock(const std::string& path) {
  Lock lock;
  // The kernel releases a lock of flock() when its process ends, however it
  // ends.
  lock.fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock.fd < 0) return lock;
  // Before the lock is taken: a child would hold it beyond our end.
  CloseInChildren(lock.fd);
  if (flock(lock.fd, LOCK_EX | LOCK_NB) == 0) return lock;
  // Any other error means that the file system has no locks.
  lock.taken = errno == EWOULDBLOCK;
  Close(std::exchange(lock.fd, -1));
  return lock;
}

absl::StatusOr<std::string> NewName(const std::string& parent, int64_t step) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
    return SystemError(errno, "no random number for a new name");
  }
  return (fs::path(parent) / absl::StrCat(".tmp-", StepDirectoryName(step), "-",
                                          absl::Hex(random, absl::kZeroPad16)))
      .string();
}

absl::Status RemoveIfStale(const std::string& path) {
  const Lock lock = TryLock(path);
  // Otherwise its owner has ended, or the file system has no locks.
  if (lock.taken) return absl::OkStatus();
  std::error_code error;
  fs::remove_all(path, error);
  if (lock.fd >= 0) Close(lock.fd);
  if (error) return Error(error, path, "remove the files of a killed process");
  return absl::OkStatus();
}

// Renamed first, so that no other process can rename a half-removed directory.
absl::Status RemoveFromItsOwner(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string away,
      NewName(fs::path(path).parent_path().string(), /*step=*/0));
  std::error_code error;
  fs::rename(path, away, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (!error) fs::remove_all(away, error);
  if (error) return Error(error, path, "remove a checkpoint in the making");
  return absl::OkStatus();
}

// Calls `remove(path)` for every aside directory.
absl::Status ForEachAside(const std::string& parent,
                          absl::Status (*remove)(const std::string&)) {
  std::vector<std::string> asides;
  std::error_code error;
  fs::directory_iterator entry(parent, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  // increment() sets the iterator to the end on an error, so `error` is checked
  // after the loop too.
  while (!error && entry != fs::directory_iterator()) {
    if (absl::StartsWith(entry->path().filename().string(), kPrefix)) {
      asides.push_back(entry->path().string());
    }
    entry.increment(error);
  }
  absl::Status result;
  if (error) result = Error(error, parent, "list the directory");
  // Removes after listing: the effect of removals on an open iterator is
  // unspecified.
  for (const std::string& aside : asides) result.Update(remove(aside));
  return result;
}

}  // namespace

absl::StatusOr<AsideDirectory> AsideDirectory::Create(const std::string& parent,
                                                      int64_t step) {
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string path, NewName(parent, step));
    if (mkdir(path.c_str(), kMode) != 0) {
      // Another process drew the same name: draws a new one.
      if (errno == EEXIST) continue;
      return SystemError(errno,
                         absl::StrCat(path, ": cannot create the directory"));
    }
    // Between mkdir() and here, the directory has no lock.
    const Lock lock = TryLock(path);
    // A sweep for stale directories has just locked this one, and removes it.
    if (lock.taken) continue;
    return AsideDirectory(path, lock.fd);
  }
}

AsideDirectory::AsideDirectory(std::string path, int lock)
    : path_(std::move(path)), lock_(lock) {}

AsideDirectory::AsideDirectory(AsideDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::exchange(other.lock_, -1)) {}

AsideDirectory::~AsideDirectory() {
  std::error_code ignored;  // the next sweep for stale directories retries
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) Close(lock_);
}

absl::Status AsideDirectory::MoveTo(const std::string& target) {
  std::error_code error;
  fs::rename(path_, target, error);
  if (error) return Error(error, path_, absl::StrCat("rename to ", target));
  // From here on, the destructor must not remove the directory.
  path_.clear();
  return absl::OkStatus();
}

absl::Status RemoveStaleAsides(const std::string& parent) {
  return ForEachAside(parent, RemoveIfStale);
}

absl::Status RemoveAllAsides(const std::string& parent) {
  return ForEachAside(parent, RemoveFromItsOwner);
}

}  // namespace lockstep
