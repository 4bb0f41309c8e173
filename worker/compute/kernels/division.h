#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_DIVISION_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_DIVISION_H_

#include <cstdint>

#include "worker/compute/kernels/host_device.h"

namespace lockstep::worker {

struct Division {
  int64_t quotient;
  int64_t remainder;
};

// Divides an index >= 0 by a size > 0. GPUs have no instruction for that: a
// division of 64 bits takes some 35 instructions, one of 32 bits a third of
// that, and few indices need more.
LOCKSTEP_HOST_DEVICE inline Division Divide(int64_t index, int64_t size) {
  int64_t quotient = 0;
  if (((index | size) >> 32) == 0) {
    quotient = static_cast<uint32_t>(index) / static_cast<uint32_t>(size);
  } else {
    quotient = index / size;
  }
  return {quotient, index - quotient * size};
}

// Divides indices below 2^31 by one size > 0 with a multiplication: quotients
// are floor(index ceil(2^(31 + l) / size) / 2^(31 + l)), where 2^l is the first
// power of two that is no smaller than size. That is exact, since the factor is
// too large by less than size / 2^(31 + l) <= 2^-31 of one (Granlund and
// Montgomery, Division by Invariant Integers using Multiplication, 1994).
// An aggregate, as arguments of kernels must be.
struct Divisor {
  // Indices and sizes are below it.
  static constexpr int64_t kLimit = int64_t{1} << 31;

  int64_t size;
  uint64_t factor;  // at most 2^32
  int shift;        // 31 + l

  static Divisor Of(int64_t size) {
    int shift = 31;
    while (int64_t{1} << (shift - 31) < size) ++shift;
    const auto divisor = static_cast<uint64_t>(size);
    return {size, ((uint64_t{1} << shift) + divisor - 1) / divisor, shift};
  }

  LOCKSTEP_HOST_DEVICE Division Divide(int64_t index) const {
    const auto quotient =
        static_cast<int64_t>(static_cast<uint64_t>(index) * factor >> shift);
    return {quotient, index - quotient * size};
  }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_DIVISION_H_
