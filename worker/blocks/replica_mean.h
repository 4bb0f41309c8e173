#ifndef LOCKSTEP_WORKER_BLOCKS_REPLICA_MEAN_H_
#define LOCKSTEP_WORKER_BLOCKS_REPLICA_MEAN_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "common/numeric/dtype.h"

namespace lockstep::worker {

// ReplicaMean is the mean of the gradients of one variable over the replicas of
// a worker, added one by one in the order of the replicas. It has the bits of
// SumInOrder() (common/collective/arithmetic.h) with all of them, but keeps
// only their sum. An absent gradient counts as zeros.
//
// Memory:  one copy of the gradient, in float32 where that is of bfloat16.
// Threads: not thread-safe.
class ReplicaMean {
 public:
  // Forgets the gradients so far.
  void Reset() { terms_ = 0; }

  // Adds a gradient: whole elements of `dtype`, at any address. All gradients
  // of a mean must have one size.
  void Add(DType dtype, absl::Span<const std::byte> gradient);

  // Writes the mean over `replicas` to `gradient`. Returns false, and writes
  // nothing, if no gradient was added.
  bool Store(DType dtype, int replicas, absl::Span<std::byte> gradient);

 private:
  void AddBFloat16(bool first, size_t count,
                   absl::Span<const std::byte> gradient);

  std::vector<std::byte> sum_;  // its memory is kept
  int terms_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BLOCKS_REPLICA_MEAN_H_
