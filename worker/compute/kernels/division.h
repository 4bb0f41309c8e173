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

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_DIVISION_H_
