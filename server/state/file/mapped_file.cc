#include "server/state/file/mapped_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/memory/usable_memory.h"
#include "common/process/forked_children.h"

namespace lockstep::server {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr char kTemporary[] = ".new";

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

absl::Status PosixError(int error, absl::string_view action,
                        absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " ", path));
}

// True if `name` in the directory is the file of `fd`.
bool IsNamed(int fd, int directory_fd, const std::string& name) {
  struct stat ours;
  struct stat named;
  return fstat(fd, &ours) == 0 &&
         fstatat(directory_fd, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) ==
             0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

// Deletes a file that a process was making under its temporary name when it was
// killed. A process that still makes the file holds its lock.
void RemoveRemainder(int directory_fd, const std::string& name) {
  const int fd =
      openat(directory_fd, name.c_str(),
             O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && IsNamed(fd, directory_fd, name)) {
    unlinkat(directory_fd, name.c_str(), 0);
  }
  close(fd);
}

absl::Status NoRoom(const std::string& path, uint64_t size,
                    absl::string_view why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "no room for ", size, " bytes at ", path, ": ", why,
      "; enlarge the file system or point --state_dir at a larger one"));
}

// The kernel kills a process that fills more memory than it may use.
absl::Status CheckFits(uint64_t size, const std::string& where) {
  const UsableMemory usable = UsableMemory::OfThisProcess();
  if (size <= usable.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the variables and what the optimizer keeps of them take ", size,
      " bytes of ", where, "; ", usable.source,
      ": spread the variables over more servers, or give this one more "
      "memory"));
}

bool IsInMemory(int fd) {
  struct statfs system = {};
  return fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

// Makes the pages now, as huge ones if possible. Errors are ignored: without
// huge pages the memory is only slower, and a lack of memory is found by the
// calls that follow.
void Populate(absl::Span<std::byte> bytes) {
  (void)madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  (void)madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE);
#endif
}

// Calls `visit(first, count)` for consecutive ranges of `size` bytes, and
// reports each to `progress`. A range is small enough to take well under a
// second.
constexpr uint64_t kRange = uint64_t{64} << 20;
template <typename Visit>
absl::Status InStretches(uint64_t size, FillProgress* progress,
                         const Visit& visit) {
  for (uint64_t first = 0; first < size; first += kRange) {
    const uint64_t count = std::min(kRange, size - first);
    LOCKSTEP_RETURN_IF_ERROR(visit(first, count));
    if (progress != nullptr) LOCKSTEP_RETURN_IF_ERROR(progress->Advance(count));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Create(
    const std::string& path, uint64_t size, FillProgress* progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(PrivateDirectory directory,
                            PrivateDirectory::Open(DirectoryOf(path)));
  const std::string name = NameOf(path);
  const int fd = openat(directory.fd(), (name + kTemporary).c_str(),
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  if (fd < 0) return PosixError(errno, "create", path + kTemporary);
  std::unique_ptr<MappedFile> file(
      new MappedFile(path, name, fd, std::move(directory)));
  LOCKSTEP_RETURN_IF_ERROR(file->CheckOwnership());
  LOCKSTEP_RETURN_IF_ERROR(file->Lock());
  LOCKSTEP_RETURN_IF_ERROR(file->CheckStillTemporary());
  // Publish() would find that too, but only after minutes of filling memory.
  if (faccessat(file->directory_fd(), name.c_str(), F_OK, 0) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists already"));
  }
  if (IsInMemory(fd)) {
    LOCKSTEP_RETURN_IF_ERROR(CheckFits(size, absl::StrCat("memory at ", path)));
  }
  LOCKSTEP_RETURN_IF_ERROR(file->Allocate(size, progress));
  return file;
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::InOwnMemory(
    uint64_t size, FillProgress* progress) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFits(size, "memory"));
  std::unique_ptr<MappedFile> file(new MappedFile("", "", -1, std::nullopt));
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are no ", size, " bytes of memory"));
  }
  file->bytes_ = {static_cast<std::byte*>(address), size};
  LOCKSTEP_RETURN_IF_ERROR(
      InStretches(size, progress, [&](uint64_t first, uint64_t count) {
        Populate(file->bytes_.subspan(first, count));
        return absl::OkStatus();
      }));
  return file;
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path, uint64_t min_size) {
  LOCKSTEP_ASSIGN_OR_RETURN(PrivateDirectory directory,
                            PrivateDirectory::Open(DirectoryOf(path)));
  const std::string name = NameOf(path);
  const int fd =
      openat(directory.fd(), name.c_str(),
             O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && (errno == ELOOP || errno == EISDIR)) {
    return absl::PermissionDeniedError(
        absl::StrCat(path,
                     " is a link or directory, not a state file; remove "
                     "it, or give this server another --state_dir"));
  }
  if (fd < 0) return PosixError(errno, "open", path);
  std::unique_ptr<MappedFile> file(
      new MappedFile(path, name, fd, std::move(directory)));
  LOCKSTEP_RETURN_IF_ERROR(file->CheckOwnership());
  LOCKSTEP_RETURN_IF_ERROR(file->Lock());
  // A process that was killed inside Publish() leaves the file two names. A
  // later Create() would empty it, under the eyes of those that have it mapped.
  if (IsNamed(fd, file->directory_fd(), file->TemporaryName())) {
    unlinkat(file->directory_fd(), file->TemporaryName().c_str(), 0);
  }
  struct stat info;
  if (fstat(fd, &info) != 0) return PosixError(errno, "inspect", path);
  const auto size = static_cast<uint64_t>(info.st_size);
  // An empty range cannot be mapped.
  if (size < min_size || size == 0) {
    return absl::DataLossError(absl::StrCat(
        path, " has ", size, " bytes, less than ", min_size, "; remove it"));
  }
  LOCKSTEP_RETURN_IF_ERROR(file->Map(size));
  return file;
}

void MappedFile::Load() { Populate(bytes_); }

absl::Status MappedFile::Remove(const std::string& path) {
  const auto directory = PrivateDirectory::Open(DirectoryOf(path));
  if (absl::IsNotFound(directory.status())) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(directory.status());
  const std::string name = NameOf(path);
  if (unlinkat(directory->fd(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return PosixError(errno, "remove", path);
  }
  RemoveRemainder(directory->fd(), name + kTemporary);
  return absl::OkStatus();
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  // Before close(), which releases the lock: after that another process may be
  // filling a file of this name.
  if (temporary_) unlinkat(directory_fd(), TemporaryName().c_str(), 0);
  if (fd_ < 0) return;
  KeepInChildren(fd_);
  close(fd_);
}

absl::Status MappedFile::Publish() {
  if (path_.empty()) return absl::OkStatus();
  // A link, not a rename, which would replace a file of another process.
  if (linkat(directory_fd(), TemporaryName().c_str(), directory_fd(),
             name_.c_str(), 0) != 0) {
    return PosixError(errno, "make", path_);
  }
  unlinkat(directory_fd(), TemporaryName().c_str(), 0);
  temporary_ = false;
  return absl::OkStatus();
}

std::string MappedFile::TemporaryName() const { return name_ + kTemporary; }

SharedFile MappedFile::Share(size_t proof_size) const {
  return OwnSharedFile(fd_, bytes_, proof_size);
}

absl::Status MappedFile::Lock() {
  // The kernel releases the lock when the process ends, however that happens.
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    // A child would hold the lock beyond our end.
    CloseInChildren(fd_);
    return absl::OkStatus();
  }
  if (errno != EWOULDBLOCK) return PosixError(errno, "lock", path_);
  return absl::UnavailableError(absl::StrCat(
      path_, " is in use by another process; wait until that has ended"));
}

absl::Status MappedFile::CheckOwnership() {
  struct stat info;
  if (fstat(fd_, &info) != 0) return PosixError(errno, "inspect", path_);
  if (S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      (info.st_mode & 077) == 0) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(path_, " is ", S_ISREG(info.st_mode) ? "a" : "no regular",
                   " file of user ", info.st_uid, " with mode ",
                   absl::StrFormat("%04o", info.st_mode & 07777),
                   "; it must be a regular one of user ", geteuid(),
                   " with mode 0600: correct that, or remove it"));
}

// Between our open and our lock another process may have published the file and
// died: then the file is no longer ours to fill.
absl::Status MappedFile::CheckStillTemporary() {
  if (IsNamed(fd_, directory_fd(), TemporaryName())) {
    temporary_ = true;
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat(path_, " is being made by another process; try again"));
}

absl::Status MappedFile::Allocate(uint64_t size, FillProgress* progress) {
  LOCKSTEP_RETURN_IF_ERROR(Resize(size));
  LOCKSTEP_RETURN_IF_ERROR(Map(size));
  return InStretches(size, progress, [&](uint64_t first, uint64_t count) {
    Populate(bytes_.subspan(first, count));
    int error = EINTR;
    while (error == EINTR) {
      // Without this a full file system would kill the process with SIGBUS at
      // some later write.
      error = posix_fallocate(fd_, static_cast<off_t>(first),
                              static_cast<off_t>(count));
    }
    if (error == ENOSPC) return NoRoom(path_, size, "the file system is full");
    if (error != 0) return PosixError(error, "allocate", path_);
    return absl::OkStatus();
  });
}

// Checks for room first, so that a request that must fail does not fill a file
// system that other programs use.
absl::Status MappedFile::Resize(uint64_t size) {
  if (ftruncate(fd_, 0) != 0) return PosixError(errno, "resize", path_);
  struct statvfs room;
  if (fstatvfs(fd_, &room) != 0) return PosixError(errno, "inspect", path_);
  const uint64_t free_bytes = uint64_t{room.f_bavail} * room.f_frsize;
  // Some file systems, such as hugetlbfs without a limit, do not know their
  // size.
  if (room.f_blocks != 0 && free_bytes < size) {
    return NoRoom(path_, size, absl::StrCat(free_bytes, " are free"));
  }
  if (ftruncate(fd_, static_cast<off_t>(size)) == 0) return absl::OkStatus();
  return PosixError(errno, "resize", path_);
}

absl::Status MappedFile::Map(uint64_t size) {
  void* address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (address == MAP_FAILED) return PosixError(errno, "map", path_);
  bytes_ = {static_cast<std::byte*>(address), size};
  // A child's mapping would hold the file open, and so the lock. Where the
  // system cannot leave it out, a start waits for such children.
  madvise(address, size, MADV_DONTFORK);
  return absl::OkStatus();
}

}  // namespace lockstep::server
