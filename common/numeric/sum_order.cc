#include "common/numeric/sum_order.h"

namespace lockstep {
namespace {

// EIGEN_MAX_ALIGN_BYTES in TensorFlow's builds.
constexpr size_t kRingAlignment = 64;  // bytes

}  // namespace

size_t RingChunk(size_t elements, size_t ranks, size_t item) {
  const size_t base = (elements + ranks - 1) / ranks;
  const size_t bytes = base * item;
  // As TensorFlow rounds chunks: one of whole 64 bytes gets 64 more. The chunks
  // decide the order of additions, and so the bits.
  const size_t more = kRingAlignment -
                      (bytes < kRingAlignment ? bytes : bytes % kRingAlignment);
  return base + more / item;
}

}  // namespace lockstep
