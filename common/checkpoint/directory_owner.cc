#include "common/checkpoint/directory_owner.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/process/forked_children.h"

namespace lockstep {
namespace {

constexpr char kMark[] = "/.owner";
constexpr size_t kMaxId = 1000;
constexpr absl::Duration kPause = absl::Milliseconds(100);

std::string Read(int fd) {
  std::string text(kMaxId, '\0');
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// Errors are ignored: without the id, messages cannot name the owner. The file
// is cut first: if the rest fails, it must not name the owner before, which
// would take the lock for its own. The same id is not written once more, since
// another process of the job may read it just then.
void Write(int fd, const std::string& text) {
  if (Read(fd) == text || ftruncate(fd, 0) != 0) return;
  if (pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

// Returns a descriptor, or -1.
int OpenMark(const std::string& directory) {
  MakeDirectories(directory).IgnoreError();  // CheckWritable() reports it
  return open(absl::StrCat(directory, kMark).c_str(),
              O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
}

absl::Status InUse(const std::string& directory, const std::string& other) {
  return absl::FailedPreconditionError(absl::StrCat(
      "checkpoint.directory: ", directory, " is in use by the job ",
      other.empty() ? "that holds .owner in it" : other,
      ", which runs; give each job a directory of its own, or wait until that "
      "one has ended"));
}

}  // namespace

absl::StatusOr<DirectoryOwner> DirectoryOwner::Take(
    const std::string& directory, const std::string& job_id,
    absl::Duration patience) {
  DirectoryOwner owner(directory, job_id, OpenMark(directory));
  // Polls: a blocking flock() knows no time limit.
  while (true) {
    const absl::Status held = owner.Hold();
    if (held.ok()) return owner;
    // An operator that restarts a chief starts the new one while the old one
    // ends.
    if (patience <= absl::ZeroDuration()) return held;
    absl::SleepFor(kPause);
    patience -= kPause;
  }
}

bool DirectoryOwner::IsAtItsPath() const {
  struct stat at_path;
  struct stat own;
  return lock_ >= 0 &&
         lstat(absl::StrCat(directory_, kMark).c_str(), &at_path) == 0 &&
         fstat(lock_, &own) == 0 && at_path.st_dev == own.st_dev &&
         at_path.st_ino == own.st_ino;
}

void DirectoryOwner::Reopen() {
  if (IsAtItsPath()) return;
  const int mark = OpenMark(directory_);
  if (mark < 0) return;
  Close();
  lock_ = mark;
  held_ = false;
  CloseInChildren(lock_);
}

absl::Status DirectoryOwner::Hold() {
  Reopen();
  // No mark: the file cannot be opened, or is a link.
  if (held_ || lock_ < 0) return absl::OkStatus();
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) {
    held_ = true;
    // Under the lock: a job that has lost it must not write its id.
    Write(lock_, job_id_);
    return absl::OkStatus();
  }
  // Not taken: a file system without locks.
  if (errno != EWOULDBLOCK) return absl::OkStatus();
  const std::string other = Read(lock_);
  // Another process of this job, see the class.
  if (other == job_id_) return absl::OkStatus();
  return InUse(directory_, other);
}

std::optional<std::string> DirectoryOwner::Running(
    const std::string& directory) {
  const std::string path = absl::StrCat(directory, kMark);
  const DirectoryOwner mark(
      directory, "", open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  // If the lock can be taken, its last holder has ended; `mark` releases it
  // again.
  if (mark.lock_ < 0 || flock(mark.lock_, LOCK_EX | LOCK_NB) == 0 ||
      errno != EWOULDBLOCK) {
    return std::nullopt;
  }
  return Read(mark.lock_);
}

bool DirectoryOwner::IsMarked(const std::string& directory) {
  return access(absl::StrCat(directory, kMark).c_str(), F_OK) == 0;
}

DirectoryOwner::DirectoryOwner(std::string directory, std::string job_id,
                               int lock)
    : directory_(std::move(directory)),
      job_id_(std::move(job_id)),
      lock_(lock) {
  // Before the lock is taken: a child would hold it beyond our end.
  if (lock_ >= 0) CloseInChildren(lock_);
}

DirectoryOwner::DirectoryOwner(DirectoryOwner&& other) noexcept
    : directory_(std::move(other.directory_)),
      job_id_(std::move(other.job_id_)),
      lock_(std::exchange(other.lock_, -1)),
      held_(std::exchange(other.held_, false)) {}

DirectoryOwner::~DirectoryOwner() { Close(); }

void DirectoryOwner::Close() {
  if (lock_ < 0) return;
  KeepInChildren(lock_);
  close(lock_);  // releases the lock; the file stays
}

}  // namespace lockstep
