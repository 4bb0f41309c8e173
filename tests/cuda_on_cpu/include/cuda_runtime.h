#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_RUNTIME_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_RUNTIME_H_

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/cuda_on_cpu/launch.h"

// The parts of the language of kernels that worker/compute/cuda uses; nvcc
// includes a header of this name before each .cu file, and so does the build of
// the simulated device.

#define __global__
#define __device__
#define __host__
#define __align__(bytes) alignas(bytes)

#define threadIdx (::lockstep::cuda_on_cpu::CurrentPosition().thread)
#define blockIdx (::lockstep::cuda_on_cpu::CurrentPosition().block)
#define blockDim (::lockstep::cuda_on_cpu::CurrentPosition().block_size)
#define gridDim (::lockstep::cuda_on_cpu::CurrentPosition().grid_size)

inline void __syncthreads() { ::lockstep::cuda_on_cpu::BlockBarrier(); }

inline void __syncwarp() { ::lockstep::cuda_on_cpu::ExchangeAll(0); }

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  bits = ::lockstep::cuda_on_cpu::Exchange(
      mask, bits,
      ::lockstep::cuda_on_cpu::Lane() ^ static_cast<unsigned>(lane_mask));
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline int64_t min(int64_t a, int64_t b) { return b < a ? b : a; }
inline int64_t max(int64_t a, int64_t b) { return a < b ? b : a; }

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_RUNTIME_H_
