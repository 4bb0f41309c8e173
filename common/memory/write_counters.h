#ifndef LOCKSTEP_COMMON_MEMORY_WRITE_COUNTERS_H_
#define LOCKSTEP_COMMON_MEMORY_WRITE_COUNTERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/memory/shared_memory.h"

namespace lockstep {

// WriteCounters lets other processes copy from buffers of this one without a
// lock: each buffer has a counter of its writes. If a reader finds the counter
// unchanged after its copy, the copy is consistent; otherwise it must be
// discarded. The writer never waits, so a slow or dead reader does no harm.
//
// Threads: safe to share. One thread at a time writes to a buffer.
class WriteCounters {
 public:
  // Errors: those of SharedMemory::Create().
  static absl::StatusOr<std::unique_ptr<WriteCounters>> Create(int num_buffers);

  // Must be called before the first byte of a write.
  void Begin(int buffer);

  // The count to pass to readers, after the write has ended.
  uint64_t Count(int buffer) const;

  // For WrittenSince() in other processes.
  SharedFile file() const { return memory_->file(); }

 private:
  explicit WriteCounters(std::unique_ptr<SharedMemory> memory)
      : memory_(std::move(memory)) {}

  const std::unique_ptr<SharedMemory> memory_;
};

// True if `counters`, the memory of WriteCounters, has such a counter.
bool HasCounter(const PeerMemory& counters, int counter);

// True if a write has begun since the counter was at `count`. Must be called
// after the copy. The counter must exist: see HasCounter().
bool WrittenSince(const PeerMemory& counters, int counter, uint64_t count);

// PeerWrites tells whether another process has written to a buffer since it
// described it. The counter must exist.
//
// Threads: safe to share.
struct PeerWrites {
  std::shared_ptr<const PeerMemory> counters;
  int counter = 0;
  uint64_t count = 0;

  // Must be called after the bytes have been read.
  bool HaveBegun() const { return WrittenSince(*counters, counter, count); }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_WRITE_COUNTERS_H_
