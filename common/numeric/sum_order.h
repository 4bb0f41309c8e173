#ifndef LOCKSTEP_COMMON_NUMERIC_SUM_ORDER_H_
#define LOCKSTEP_COMMON_NUMERIC_SUM_ORDER_H_

#include <cstddef>

namespace lockstep {

// The order in which the values of the ranks are added.
enum class SumOrder : int {
  kRank = 1,  // ((x0 + x1) + x2) + ...
  // TensorFlow's ring: a tensor is cut into chunks, and the values of chunk c
  // are added in the order of the ranks c, c + 1, ..., 0, ..., c - 1.
  kRing = 2,
};

// Returns the elements of each chunk of a ring; the last ones may be shorter or
// empty.
//
// Units: `item` is bytes per element.
size_t RingChunk(size_t elements, size_t ranks, size_t item);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_SUM_ORDER_H_
