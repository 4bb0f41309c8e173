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
// lock: each buffer has a counter that counts how often its writing began. Who
// has copied and finds the counter as it was told has copied what was written
// then; else the copy is of no use. Nobody waits for a reader, so that a slow
// or dead one does no harm.
//
// Threads: safe to share. One thread at a time writes to a buffer.
class WriteCounters {
 public:
  // Errors: those of SharedMemory::Create().
  static absl::StatusOr<std::unique_ptr<WriteCounters>> Create(int num_buffers);

  // To be called before the first byte is written.
  void Begin(int buffer);

  // To be told to readers, once the writing is over.
  uint64_t Count(int buffer) const;

  // For WrittenSince() in other processes.
  SharedFile file() const { return memory_->file(); }

 private:
  explicit WriteCounters(std::unique_ptr<SharedMemory> memory)
      : memory_(std::move(memory)) {}

  const std::unique_ptr<SharedMemory> memory_;
};

// Whether `counters`, the memory of WriteCounters, have such a counter.
bool HasCounter(const PeerMemory& counters, int counter);

// To be called after the copy: whether writing began since the counter was at
// `count`. The counter must be one that there is.
bool WrittenSince(const PeerMemory& counters, int counter, uint64_t count);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_WRITE_COUNTERS_H_
