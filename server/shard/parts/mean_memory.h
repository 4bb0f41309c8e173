#ifndef LOCKSTEP_SERVER_SHARD_PARTS_MEAN_MEMORY_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_MEAN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/memory/shared_memory.h"
#include "common/memory/write_counters.h"

namespace lockstep::server {

// MeanMemory is the memory of the mean gradients that a server computes. If it
// is shared, other processes of the host read means in place; a counter of
// writes per part shows a reader whether the mean was overwritten while it
// read.
//
// Threads: safe to share; calls for the same part must be synchronised.
// Units:   bytes.
class MeanMemory {
 public:
  // The memory of one mean.
  struct Buffer {
    absl::Span<std::byte> bytes;
    // True if `bytes` are the part's shared memory. False if they are `memory`:
    // the part has no shared memory, or an answer still holds it.
    bool shared = false;
    std::unique_ptr<std::byte[]> memory = nullptr;  // of a private one
    // Keeps a shared one mapped while an answer holds the buffer, which may be
    // longer than the shard lives.
    std::shared_ptr<SharedMemory> mapping = nullptr;
  };

  // Memory that is not shared; parts may have any size.
  MeanMemory() = default;

  // Shared memory for means of these sizes, by part; parts of size 0 get none.
  //
  // Errors: those of SharedMemory::Create().
  static absl::StatusOr<std::unique_ptr<MeanMemory>> MakeShared(
      absl::Span<const size_t> sizes);

  // Returns memory for a new mean of a part, with undefined contents: that of
  // the `last` one, or other memory while an answer holds it. Marks shared
  // memory as about to be written.
  std::shared_ptr<Buffer> Renew(int part, size_t size,
                                std::shared_ptr<Buffer> last);

  // Returns the place where other processes find the newest mean of the part,
  // which was written to `buffer`; nullopt if it is private.
  std::optional<SharedPlace> PlaceOf(int part, const Buffer& buffer) const;

  // The files from which a process of this host reads means.
  struct Files {
    SharedFile means;
    SharedFile counters;
  };
  // Returns nullopt if the memory is not shared.
  std::optional<Files> files() const;

 private:
  std::shared_ptr<SharedMemory> memory_;
  std::unique_ptr<WriteCounters> counters_;
  std::vector<uint64_t> offsets_;                 // in the file, by part
  std::vector<std::shared_ptr<Buffer>> buffers_;  // by part; null: none
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_MEAN_MEMORY_H_
