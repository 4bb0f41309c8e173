#ifndef LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_
#define LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep {

// Lets another process of this host find a file that this process holds open:
// /proc/<pid>/fd/<fd>. A reader must not look for a pid of another pid space,
// because that number belongs to another process there. If the number has been
// reused meanwhile, the proof reveals it.
struct SharedFile {
  int64_t pid = 0;        // of the holder, in its own pid space
  int fd = -1;            // the holder's descriptor
  uint64_t size = 0;      // bytes
  std::string proof;      // the first bytes of the file
  std::string pid_space;  // of the holder, see OwnPidSpace()

  bool operator==(const SharedFile&) const = default;
};

// Returns the name of this process's pid space: the running system and its pid
// namespace. No two spaces of any hosts have the same name. Empty if the system
// does not provide it.
std::string OwnPidSpace();

// Describes a file that this process holds open and has mapped as `bytes`, for
// other processes; its first `proof_size` bytes are the proof.
SharedFile OwnSharedFile(int fd, absl::Span<const std::byte> bytes,
                         size_t proof_size);

// The location of a part's value in a file that a server shares, and the value
// of its write counter when it was written (see WriteCounters).
struct SharedPlace {
  uint64_t offset = 0;  // bytes from the beginning of the file
  int counter = 0;
  uint64_t writes = 0;
};

// SharedMemory is memory of this process that others of the same user and host
// may map. It is part of no file system: nothing of it remains after its
// processes, however they end. It cannot shrink, so reading it never kills a
// reader.
//
//   a page with the proof, 16 random bytes | bytes()
//
// Threads: safe to share; the caller must synchronise access to the bytes.
class SharedMemory {
 public:
  // Offset of bytes() in the file.
  static constexpr size_t kHeaderSize = 4096;

  // Allocates `size` bytes of zeros, all of them before it returns. `name`
  // appears in the process's mappings.
  //
  //   kResourceExhausted  not enough memory
  //   kUnavailable        the system has no memory of this kind
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Create(
      const std::string& name, uint64_t size);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  absl::Span<std::byte> bytes() const { return mapping_.subspan(kHeaderSize); }
  SharedFile file() const;

 private:
  explicit SharedMemory(int fd) : fd_(fd) {}
  absl::Status Fill(uint64_t size);

  const int fd_;
  absl::Span<std::byte> mapping_;
};

// PeerMemory is a file of another process, mapped for reading. The mapping
// stays valid as long as the object, even if that process ends.
//
// Threads: safe to share. Writes of the other process become visible at any
//          time and in any order.
class PeerMemory {
 public:
  // kSealed refuses a file with holes, and one whose holder could change its
  // length while it is read.
  enum class Require { kSealed, kAnyFile };

  // Opens and maps `file`.
  //
  //   kInvalidArgument   an impossible size or proof
  //   kNotFound          this process cannot see the other one, which is on
  //                      another host or in another container; or that process
  //                      has no such file
  //   kPermissionDenied  another owner, no regular file, another length,
  //                      another proof, or not sealed
  static absl::StatusOr<std::shared_ptr<const PeerMemory>> Open(
      const SharedFile& file, Require require);

  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // The whole file.
  absl::Span<const std::byte> bytes() const { return bytes_; }

  // True if `size` bytes at `offset` are all in the file.
  bool Holds(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

 private:
  explicit PeerMemory(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  const absl::Span<const std::byte> bytes_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_
