#include "deploy/cli/tasks/log_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kLockName[] = "/run.lock";
constexpr int kMaxNumber = 999'999'999;

absl::Status Refused(const std::string& path, absl::string_view what,
                     absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what, ": ", why));
}

int OpenLock(const std::string& directory, int flags) {
  return open((directory + kLockName).c_str(),
              O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
}

struct flock WholeFile() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// `parent` is mostly /tmp, where other users may make directories and links of
// any name.
bool IsOwnDirectory(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == geteuid();
}

// Returns this user's log directories of the job in `parent`, by number.
std::map<int, std::string> Numbered(const std::string& parent,
                                    const std::string& prefix) {
  std::map<int, std::string> found;
  std::error_code error;
  for (fs::directory_iterator entries(parent, error), end;
       !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    absl::string_view rest = name;
    int number = 0;
    // SimpleAtoi() also takes "+1" and "01", which no run has made.
    if (absl::ConsumePrefix(&rest, prefix) && absl::SimpleAtoi(rest, &number) &&
        absl::StrCat(number) == rest && number >= 1 && number <= kMaxNumber &&
        IsOwnDirectory(entries->path().string())) {
      found[number] = entries->path().string();
    }
  }
  return found;
}

// The files of a run would take the place of those of a person.
absl::Status CheckIsNoPersons(const std::string& path) {
  std::error_code error;
  if (fs::exists(path + kLockName, error)) return absl::OkStatus();
  for (const char* name : {kClusterFile, kJobFile}) {
    if (!fs::exists(absl::StrCat(path, "/", name), error)) continue;
    return Refused(path, "--log_dir is no directory of a run",
                   absl::StrCat("its ", name,
                                " would be overwritten; name a directory for "
                                "logs alone, which is made if missing"));
  }
  return absl::OkStatus();
}

// A directory without a lock is not one of a run, or belongs to a run that is
// about to lock it.
void RemoveOldest(std::map<int, std::string> directories) {
  while (static_cast<int>(directories.size()) > LogDirectory::kKept) {
    const std::string path = directories.begin()->second;
    directories.erase(directories.begin());
    if (!LogDirectory::IsLeft(path)) continue;
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogDirectory>> LogDirectory::Open(
    const std::string& log_dir, const std::string& parent,
    const std::string& job) {
  if (!log_dir.empty()) {
    std::error_code error;
    fs::create_directories(log_dir, error);
    // Without `unknown` it would throw where a folder above may not be entered.
    std::error_code unknown;
    if (!fs::is_directory(log_dir, unknown)) {
      return Refused(
          log_dir, "--log_dir is no directory and cannot be made",
          absl::StrCat(error ? error.message() : "something else has this name",
                       "; name a directory that you may make"));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckIsNoPersons(log_dir));
    return Lock(log_dir);
  }
  const std::string prefix = absl::StrCat("lockstep-", job, "-");
  const std::map<int, std::string> there = Numbered(parent, prefix);
  for (int n = there.empty() ? 1 : there.rbegin()->first + 1; n <= kMaxNumber;
       ++n) {
    const std::string path = absl::StrCat(parent, "/", prefix, n);
    if (mkdir(path.c_str(), 0700) == 0) {
      // Before the lock: the new directory counts as one of those that are
      // kept, and without a lock it is not removed.
      RemoveOldest(Numbered(parent, prefix));
      return Lock(path);
    }
    // EEXIST: another user has this number.
    if (errno != EEXIST) {
      return Refused(
          path, "no directory for logs can be made",
          absl::StrCat(strerror(errno), "; name another one with --log_dir"));
    }
  }
  return Refused(absl::StrCat(parent, "/", prefix), "no number is left",
                 "name another directory with --log_dir");
}

absl::StatusOr<std::unique_ptr<LogDirectory>> LogDirectory::Lock(
    const std::string& path) {
  const int fd = OpenLock(path, O_CREAT);
  if (fd < 0) {
    return Refused(
        path, "no file can be made in the directory for logs",
        absl::StrCat(strerror(errno), "; name another one with --log_dir"));
  }
  // A lock of the open file, which ends with the run however that ends. On a
  // file system without locks the user must keep runs apart.
  struct flock lock = WholeFile();
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0 ||
      (errno != EAGAIN && errno != EACCES)) {
    return std::unique_ptr<LogDirectory>(new LogDirectory(path, fd));
  }
  close(fd);
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      ": a run that goes on keeps its logs in this directory; name another one "
      "with --log_dir, or wait for the end of that run"));
}

bool LogDirectory::IsLeft(const std::string& path) {
  const int fd = OpenLock(path, 0);
  if (fd < 0) return false;
  // Asks without taking the lock: a run that begins would be refused meanwhile.
  struct flock lock = WholeFile();
  const bool left =
      fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
  close(fd);
  return left;
}

LogDirectory::~LogDirectory() { close(lock_fd_); }

}  // namespace lockstep::cli
