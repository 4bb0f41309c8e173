#ifndef LOCKSTEP_CHIEF_SHARD_ACCESS_H_
#define LOCKSTEP_CHIEF_SHARD_ACCESS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace lockstep {

// What a server copied aside: its state at one committed step.
struct ShardSnapshot {
  int64_t global_step = 0;
  std::vector<float> scalars;  // of the optimizer at that step
};

// ShardAccess moves the state of one server's parts to and from a checkpoint.
//
// Units: `tensor` 0 is the value, k the k-th slot; bytes are those of
//        consecutive parts, one after the other.
class ShardAccess {
 public:
  virtual ~ShardAccess() = default;

  // Fills `bytes` from the snapshot that was begun last.
  virtual absl::Status ReadSnapshot(int first_part, int num_parts, int tensor,
                                    absl::Span<char> bytes) = 0;

  // Overwrites, before the server is opened for workers.
  virtual absl::Status WriteParts(int first_part, int num_parts, int tensor,
                                  absl::Span<const char> bytes) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CHIEF_SHARD_ACCESS_H_
