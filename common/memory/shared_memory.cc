#include "common/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kProofSize = 16;
constexpr size_t kMaxProofSize = SharedMemory::kHeaderSize;
// F_SEAL_SEAL: no further seals can be added, such as one against writing.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// FileDescriptor closes its descriptor when it is destroyed.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status NoMemory(int error, uint64_t size) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no ", size, " bytes of shared memory: ", strerror(error)));
}

absl::Status CheckForm(const SharedFile& file) {
  if (file.pid < 1 || file.pid > std::numeric_limits<pid_t>::max() ||
      file.fd < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared file of pid ", file.pid, ", fd ", file.fd,
                     ": pid must be a process's, fd at least 0"));
  }
  if (file.proof.size() < kProofSize || file.proof.size() > kMaxProofSize ||
      file.proof.size() > file.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared file of ", file.size, " bytes with a proof of ",
                     file.proof.size(), ": the proof must have ", kProofSize,
                     " to ", kMaxProofSize, " and be part of the file"));
  }
  return absl::OkStatus();
}

absl::Status Denied(const std::string& path, absl::string_view why) {
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is no file to be shared: ", why));
}

absl::Status CheckInfo(const struct stat& info, const SharedFile& file,
                       const std::string& path) {
  if (!S_ISREG(info.st_mode)) return Denied(path, "not a regular file");
  if (info.st_uid != geteuid()) return Denied(path, "of another user");
  if (static_cast<uint64_t>(info.st_size) == file.size) return absl::OkStatus();
  return Denied(path, absl::StrCat(info.st_size, " bytes, not ", file.size));
}

// Checks that the file cannot change its length and has no holes: reading a
// hole would allocate the page to the reading process.
absl::Status CheckSealed(int fd, const struct stat& info,
                         const std::string& path) {
  constexpr int kRequired = F_SEAL_SHRINK | F_SEAL_GROW;
  constexpr int64_t kBlock = 512;  // bytes that st_blocks counts in
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kRequired) != kRequired) {
    return Denied(path, "not sealed against shrinking and growing");
  }
  if (info.st_blocks >= info.st_size / kBlock) return absl::OkStatus();
  return Denied(path, absl::StrCat("only ", info.st_blocks * kBlock, " of ",
                                   info.st_size, " bytes have memory"));
}

absl::Status NotVisible(const std::string& path, int error) {
  return absl::NotFoundError(
      absl::StrCat("cannot open ", path, ": ", strerror(error),
                   "; the process is of another host, container or user"));
}

absl::Status CheckSpace(const SharedFile& file) {
  const std::string own = OwnPidSpace();
  // Without a known space of its own, a process cannot tell other spaces apart.
  if (!own.empty() && file.pid_space == own) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("process ", file.pid,
                   " is of another host, or of another namespace of processes "
                   "as those of containers are"));
}

// Returns one line; empty if there is none.
std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

std::string OwnPidSpace() {
  char link[64];
  const ssize_t size = readlink("/proc/self/ns/pid", link, sizeof(link));
  // The namespace's number alone could be equal on two hosts or after a reboot.
  const std::string boot = BootId();
  if (size <= 0 || boot.empty()) return "";
  return absl::StrCat(boot, " ", absl::string_view(link, size));
}

SharedFile OwnSharedFile(int fd, absl::Span<const std::byte> bytes,
                         size_t proof_size) {
  return {getpid(), fd, bytes.size(),
          std::string(reinterpret_cast<const char*>(bytes.data()), proof_size),
          OwnPidSpace()};
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Create(
    const std::string& name, uint64_t size) {
  // A file's size is signed.
  if (size > std::numeric_limits<int64_t>::max() - kHeaderSize) {
    return NoMemory(ENOMEM, size);
  }
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot make shared memory: ", strerror(errno)));
  }
  // Owns the descriptor, which a failure below closes.
  std::unique_ptr<SharedMemory> memory(new SharedMemory(fd));
  LOCKSTEP_RETURN_IF_ERROR(memory->Fill(kHeaderSize + size));
  return memory;
}

absl::Status SharedMemory::Fill(uint64_t size) {
  if (ftruncate(fd_, static_cast<off_t>(size)) != 0) {
    return NoMemory(errno, size);
  }
  void* address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (address == MAP_FAILED) return NoMemory(errno, size);
  mapping_ = {static_cast<std::byte*>(address), size};
  // Requests huge pages; the pages are allocated now, or the call fails.
  (void)madvise(address, size, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  (void)madvise(address, size, MADV_POPULATE_WRITE);
#endif
  // posix_fallocate() returns its error and does not set errno. Without it, a
  // write to a page that cannot be allocated would kill the process with
  // SIGBUS.
  int error = EINTR;
  while (error == EINTR) {
    error = posix_fallocate(fd_, 0, static_cast<off_t>(size));
  }
  if (error != 0) return NoMemory(error, size);
  // The proof must be there before the file is described to anyone.
  if (getrandom(address, kProofSize, 0) != kProofSize ||
      fcntl(fd_, F_ADD_SEALS, kSeals) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot seal shared memory: ", strerror(errno)));
  }
  return absl::OkStatus();
}

SharedMemory::~SharedMemory() {
  if (!mapping_.empty()) munmap(mapping_.data(), mapping_.size());
  close(fd_);
}

SharedFile SharedMemory::file() const {
  return OwnSharedFile(fd_, mapping_, kProofSize);
}

absl::StatusOr<std::shared_ptr<const PeerMemory>> PeerMemory::Open(
    const SharedFile& file, Require require) {
  LOCKSTEP_RETURN_IF_ERROR(CheckForm(file));
  LOCKSTEP_RETURN_IF_ERROR(CheckSpace(file));
  const std::string path = absl::StrCat("/proc/", file.pid, "/fd/", file.fd);
  // Checks the type before open(), because opening a device may have effects.
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return NotVisible(path, errno);
  LOCKSTEP_RETURN_IF_ERROR(CheckInfo(info, file, path));
  // Should the path lead to a FIFO or a terminal by now, opening it must
  // neither block nor have an effect.
  const FileDescriptor fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) {
    return NotVisible(path, errno);
  }
  // Checked again after open(), because the path may lead to another file by
  // now.
  LOCKSTEP_RETURN_IF_ERROR(CheckInfo(info, file, path));
  if (require == Require::kSealed) {
    LOCKSTEP_RETURN_IF_ERROR(CheckSealed(fd.get(), info, path));
  }
  void* address = mmap(nullptr, file.size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return NoMemory(errno, file.size);
  const absl::Span<const std::byte> bytes(static_cast<std::byte*>(address),
                                          file.size);
  std::shared_ptr<const PeerMemory> memory(new PeerMemory(bytes));
  // The process or descriptor number may have been reused since the file was
  // described.
  if (std::memcmp(bytes.data(), file.proof.data(), file.proof.size()) != 0) {
    return Denied(path, "it begins with other bytes");
  }
  return memory;
}

PeerMemory::~PeerMemory() {
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lockstep
