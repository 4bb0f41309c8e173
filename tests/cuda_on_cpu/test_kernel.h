#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_TEST_KERNEL_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_TEST_KERNEL_H_

#include <cuda_runtime.h>

#include <vector>

#include "gtest/gtest.h"

namespace lockstep::cuda_on_cpu {

// Queues a kernel of the lambda `body`, which is given `arguments`.
template <typename Body, typename... Arguments>
void Launch(Body body, const dim3& grid, const dim3& block, cudaStream_t stream,
            Arguments... arguments) {
  Launcher(body, "Test", grid, block, 0, stream)(arguments...);
}

inline cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
            cudaSuccess);
  return stream;
}

template <typename T>
T* NewMemory(size_t count) {
  T* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, count * sizeof(T)), cudaSuccess);
  return data;
}

// A copy of device memory, once the stream is there.
template <typename T>
std::vector<T> Fetch(const T* data, size_t count, cudaStream_t stream) {
  std::vector<T> values(count);
  EXPECT_EQ(cudaMemcpyAsync(values.data(), data, count * sizeof(T),
                            cudaMemcpyDefault, stream),
            cudaSuccess);
  return values;
}

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_TEST_KERNEL_H_
