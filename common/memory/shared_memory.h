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

// How another process of this host finds a file that a process holds open:
// as /proc/<pid>/fd/<fd>. Nobody looks for a pid of another space: somebody
// else has that number here. Where it has been given to another process
// meanwhile, the proof tells.
struct SharedFile {
  int64_t pid = 0;        // of the holder, as it sees itself
  int fd = -1;            // the holder's
  uint64_t size = 0;      // bytes
  std::string proof;      // the bytes that the file begins with
  std::string pid_space;  // of the holder, see OwnPidSpace()
};

// Where this process's pid counts: the running system and its namespace of
// processes, so that no two spaces of any hosts have the same text. Empty where
// the system does not tell.
std::string OwnPidSpace();

// A file that this process holds open, mapped as `bytes`, for others; its first
// `proof_size` bytes are the proof.
SharedFile OwnSharedFile(int fd, absl::Span<const std::byte> bytes,
                         size_t proof_size);

// Of a part's value in a file that a server shares: where it is, and how often
// a certain counter had counted when it was written (see WriteCounters).
struct SharedPlace {
  uint64_t offset = 0;  // bytes from the beginning of the file
  int counter = 0;
  uint64_t writes = 0;
};

// SharedMemory is memory of this process that others of the same user and host
// may map. It is part of no file system: however its processes end, nothing of
// it stays. It cannot shrink, so that reading it never kills a reader.
//
//   a page with the proof, 16 random bytes | bytes()
//
// Threads: safe to share; the bytes are the caller's to guard.
class SharedMemory {
 public:
  // Where bytes() begin in the file.
  static constexpr size_t kHeaderSize = 4096;

  // Makes `size` bytes of zeros, which are there before this returns. `name`
  // is for whoever looks at the process's mappings.
  //
  //   kResourceExhausted  no memory
  //   kUnavailable        the system has no such memory
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

// PeerMemory is a file of another process, mapped for reading. It stays as
// long as the object, whatever becomes of that process.
//
// Threads: safe to share. What the other process writes meanwhile is seen at
//          any time and in any order.
class PeerMemory {
 public:
  // kSealed refuses what its holder could make shorter or longer while it is
  // read, and what has holes.
  enum class Require { kSealed, kAnyFile };

  //   kInvalidArgument   a size or a proof that cannot be
  //   kNotFound          this process cannot see the other one, which is of
  //                      another host or container; or that has no such file
  //   kPermissionDenied  of another user, no regular file, of another length,
  //                      another proof, or not sealed
  static absl::StatusOr<std::shared_ptr<const PeerMemory>> Open(
      const SharedFile& file, Require require);

  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // The whole file.
  absl::Span<const std::byte> bytes() const { return bytes_; }

  // Whether `size` bytes at `offset` are all in the file.
  bool Holds(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

 private:
  explicit PeerMemory(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  const absl::Span<const std::byte> bytes_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_
