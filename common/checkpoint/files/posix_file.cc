#include "common/checkpoint/files/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr mode_t kFileMode = 0640;
constexpr mode_t kDirectoryMode = 0750;

absl::Status ErrnoError(const std::string& path, absl::string_view act) {
  // Saved first: StrCat() may allocate and change errno.
  const int cause = errno;
  return SystemError(cause, absl::StrCat(path, ": cannot ", act));
}

}  // namespace

absl::Status SystemError(int error, absl::string_view message) {
  const absl::Status status = absl::ErrnoToStatus(error, message);
  // kAborted is ESTALE, on network file systems.
  const bool passing =
      absl::IsAborted(status) || error == EMFILE || error == ENFILE;
  return passing ? absl::UnavailableError(status.message()) : status;
}

PosixFile::PosixFile(std::string path, int fd)
    : path_(std::move(path)), fd_(fd) {}

PosixFile::PosixFile(PosixFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

PosixFile::~PosixFile() { Close(); }

void PosixFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::Status PosixFile::Error(absl::string_view act) const {
  return ErrnoError(path_, act);
}

absl::StatusOr<PosixFile> PosixFile::OpenForRead(const std::string& path) {
  // Non-blocking: open() of a pipe in place of the file would block.
  PosixFile file(path, open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd_ < 0) return file.Error("open");
  struct stat about;
  if (fstat(file.fd_, &about) != 0) return file.Error("examine");
  if (S_ISREG(about.st_mode)) return file;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is not a regular file"));
}

absl::StatusOr<PosixFile> PosixFile::CreateNew(const std::string& path) {
  PosixFile file(path, open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                            kFileMode));
  if (file.fd_ < 0) return file.Error("create");
  return file;
}

absl::StatusOr<PosixFile> PosixFile::CreateUnnamed(
    const std::string& directory) {
  // Not O_TMPFILE, which some file systems lack.
  std::string path = absl::StrCat(directory, "/.lockstep-XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  PosixFile file(path, fd);
  if (fd < 0) return file.Error("create");
  if (unlink(path.c_str()) != 0) return file.Error("take the name away");
  return file;
}

absl::StatusOr<PosixFile> PosixFile::Again() const {
  PosixFile file(path_, fcntl(fd_, F_DUPFD_CLOEXEC, 0));
  if (file.fd_ < 0) return file.Error("open again");
  return file;
}

absl::StatusOr<uint64_t> PosixFile::Size() const {
  struct stat about;
  if (fstat(fd_, &about) != 0) return Error("examine");
  return static_cast<uint64_t>(about.st_size);
}

absl::Status PosixFile::Reserve(uint64_t bytes) const {
  const auto length = static_cast<off_t>(bytes);
  if (bytes != 0) {
    int result;
    // Reserves blocks now, so a full disk fails before training has spent time
    // on a checkpoint.
    do {
      result = fallocate(fd_, 0, 0, length);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return absl::OkStatus();
    // A file system without fallocate(): only the length can be set, and a full
    // disk shows later, at a write.
    if (errno != EOPNOTSUPP && errno != ENOSYS) {
      return Error(absl::StrCat("reserve ", bytes, " bytes"));
    }
  }
  if (ftruncate(fd_, length) == 0) return absl::OkStatus();
  return Error(absl::StrCat("make it ", bytes, " bytes long"));
}

absl::Status PosixFile::WriteAt(uint64_t offset,
                                absl::Span<const char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done =
        pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    // POSIX allows 0 without an errno; without one the message would name no
    // cause.
    if (done == 0) errno = EIO;
    if (done <= 0) {
      return Error(
          absl::StrCat("write ", bytes.size(), " bytes at byte ", offset));
    }
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return absl::OkStatus();
}

absl::Status PosixFile::ReadAt(uint64_t offset, absl::Span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done =
        pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      return Error(
          absl::StrCat("read ", bytes.size(), " bytes at byte ", offset));
    }
    if (done == 0) {
      return absl::DataLossError(
          absl::StrCat(path_, ": the file ends at byte ", offset, ", ",
                       bytes.size(), " more are needed: it was cut off"));
    }
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return absl::OkStatus();
}

absl::Status PosixFile::Sync() const {
  return fsync(fd_) == 0 ? absl::OkStatus() : Error("sync");
}

namespace {

// Makes the name of a new directory survive a crash of the machine.
absl::Status SyncNameOf(const std::string& directory) {
  const std::string parent =
      std::filesystem::path(directory).parent_path().string();
  const absl::Status synced = SyncDirectory(parent.empty() ? "." : parent);
  // A parent may be written to, and yet not be opened.
  return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
}

}  // namespace

absl::Status MakeDirectories(const std::string& path) {
  if (mkdir(path.c_str(), kDirectoryMode) == 0) return SyncNameOf(path);
  std::error_code error;
  if (errno == EEXIST && std::filesystem::is_directory(path, error)) {
    return absl::OkStatus();
  }
  // EEXIST with a file in place is also refused here.
  if (errno != ENOENT) return ErrnoError(path, "create the directory");
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (parent.empty() || parent == path) {
    return ErrnoError(path, "create the directory");
  }
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(parent));
  // EEXIST: another process created it meanwhile, or the path is "a/b/", whose
  // parent "a/b" is the same directory.
  if (mkdir(path.c_str(), kDirectoryMode) == 0) return SyncNameOf(path);
  if (errno == EEXIST) return absl::OkStatus();
  return ErrnoError(path, "create the directory");
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoError(path, "open the directory");
  absl::Status synced;
  // EINVAL and ENOTSUP: the file system syncs no directories; it keeps their
  // names in its own way.
  if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) {
    synced = ErrnoError(path, "sync the directory");
  }
  close(fd);
  return synced;
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t max_bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const PosixFile file, PosixFile::OpenForRead(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the file has ",
                                                   size, " bytes, at most ",
                                                   max_bytes, " are allowed"));
  }
  std::string contents(size, '\0');
  LOCKSTEP_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(contents)));
  return contents;
}

absl::Status WriteWholeFile(const std::string& path,
                            absl::string_view contents) {
  LOCKSTEP_ASSIGN_OR_RETURN(const PosixFile file, PosixFile::CreateNew(path));
  absl::Status written = file.WriteAt(0, contents);
  if (written.ok()) written = file.Sync();
  // The errors of unlink() and close() are ignored: the status already tells
  // the first cause.
  if (!written.ok()) unlink(path.c_str());
  return written;
}

}  // namespace lockstep
