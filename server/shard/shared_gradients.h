#ifndef LOCKSTEP_SERVER_SHARD_SHARED_GRADIENTS_H_
#define LOCKSTEP_SERVER_SHARD_SHARED_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/memory/shared_memory.h"
#include "server/step/engine.h"

namespace lockstep::server {

// SharedGradients holds the gradient memory of the workers that run on this
// host: their pushes carry no bytes.
//
// A worker must not change its gradients before all its pushes are answered. If
// it does, it spoils only its own gradient.
//
// Threads: safe to share. Gradients that were handed out stay readable even if
//          the worker is removed.
class SharedGradients {
 public:
  // A part of this server.
  //
  // Units: bytes.
  struct Part {
    size_t size = 0;
    size_t element = 1;  // size of each, above 0
  };
  explicit SharedGradients(std::vector<Part> parts)
      : parts_(std::move(parts)) {}

  // Declares that the gradient of part p lies in `memory` at offsets[p].
  // Replaces the memory of an older incarnation of the worker.
  //
  //   kInvalidArgument     not one offset per part, a part that is not all in
  //                        the memory, or an offset that is no multiple of the
  //                        size of an element
  //   kFailedPrecondition  a newer incarnation has shared its memory
  absl::Status Add(int worker, uint64_t incarnation,
                   std::shared_ptr<const PeerMemory> memory,
                   std::vector<uint64_t> offsets) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the gradients of parts that must exist.
  //
  //   kNotFound  the worker shares no memory with this process
  absl::StatusOr<std::vector<PartGradient>> Find(int worker,
                                                 uint64_t incarnation,
                                                 int first_part,
                                                 int num_parts) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Releases the memory of this incarnation of the worker, or of an older one.
  void Remove(int worker, uint64_t incarnation) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    uint64_t incarnation = 0;
    std::shared_ptr<const PeerMemory> memory;
    std::vector<uint64_t> offsets;
  };

  absl::Status CheckOffsets(const PeerMemory& memory,
                            const std::vector<uint64_t>& offsets) const;

  const std::vector<Part> parts_;

  mutable Mutex mutex_;
  std::map<int, Entry> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_SHARED_GRADIENTS_H_
