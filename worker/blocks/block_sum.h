#ifndef LOCKSTEP_WORKER_BLOCKS_BLOCK_SUM_H_
#define LOCKSTEP_WORKER_BLOCKS_BLOCK_SUM_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "common/numeric/dtype.h"

namespace lockstep::worker {

// BlockSum adds up the gradients of one variable over the micro-batches of a
// block, in the order of common/plan/number_tree.h and by the servers' own
// addition: a server that adds up the same gradients gets the same bits.
// Subnormal numbers count as zeros, except in float16.
//
// Memory:  a copy of the gradient for each level of the tree, at most.
// Threads: not thread-safe.
class BlockSum {
 public:
  // True if sums of this type are not rounded otherwise than the servers'.
  static bool MaySum(DType dtype) { return dtype != DType::kBFloat16; }

  // Forgets the gradients so far.
  void Reset() { top_ = 0; }

  // Adds the gradient of micro-batch `index` of `count`, which must follow each
  // other from 0. `gradient` holds it, aligned to its elements; zeros if it is
  // absent. After the last one `gradient` is the sum; before that its contents
  // are undefined. Returns false if all gradients in the sum are absent.
  bool Add(int index, int count, DType dtype, absl::Span<std::byte> gradient,
           bool absent);

 private:
  struct Entry {
    bool absent = false;
    std::vector<std::byte> sum = {};
  };

  std::vector<Entry> stack_;  // memory is kept; the first `top_` count
  size_t top_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BLOCKS_BLOCK_SUM_H_
