#include "worker/data/files/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/files/file_reading.h"
#include "worker/data/files/gunzip.h"

namespace lockstep::worker {
namespace {

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist/";
// A read of this size is short enough to show progress.
constexpr size_t kReadChunk = size_t{1} << 24;

// FileDescriptor closes what it holds.
class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path)
      // Non-blocking, so that opening a named pipe does not wait for a writer;
      // CheckSize() then refuses it.
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status CannotOpen(const std::string& path, int error) {
  if (error == ENOENT && absl::StartsWith(path, kFashionMnist)) {
    return absl::NotFoundError(
        "no such file; install the package dataset-fashion-mnist");
  }
  return absl::ErrnoToStatus(error, "cannot be opened");
}

absl::Status CheckSize(const struct stat& info, int64_t max_bytes) {
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError("not a regular file");
  }
  if (info.st_size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(static_cast<int64_t>(info.st_size), " bytes; at most ",
                     max_bytes, " are read: give a smaller file"));
  }
  return absl::OkStatus();
}

// Fills `bytes`, and shortens it if the file ends earlier, as it may if another
// process truncates it.
absl::Status ReadAll(int fd, std::vector<uint8_t>& bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + filled,
                             std::min(kReadChunk, bytes.size() - filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    FileReading::Advance(got);
  }
  bytes.resize(filled);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> ReadBytes(const std::string& path,
                                               int64_t max_bytes) {
  const FileDescriptor file(path);
  if (file.get() < 0) return CannotOpen(path, errno);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, "cannot be examined");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckSize(info, max_bytes));
  FileReading::Begin("reads", path, info.st_size);
  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  LOCKSTEP_RETURN_IF_ERROR(ReadAll(file.get(), bytes));
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> ReadDataFile(const std::string& path,
                                                  int64_t max_bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes,
                            ReadBytes(path, max_bytes));
  if (!IsGzip(bytes)) return bytes;
  FileReading::Begin("unpacks", path, static_cast<int64_t>(bytes.size()));
  return Gunzip(bytes, max_bytes);
}

absl::StatusOr<std::string> ReadDataText(const std::string& path) {
  const absl::StatusOr<std::vector<uint8_t>> bytes = ReadDataFile(path);
  if (bytes.ok()) return std::string(bytes->begin(), bytes->end());
  return absl::Status(bytes.status().code(),
                      absl::StrCat(path, ": ", bytes.status().message()));
}

}  // namespace lockstep::worker
