#include <cuda_runtime.h>

#include <cmath>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/test_kernel.h"

namespace lockstep::cuda_on_cpu {
namespace {

using ::testing::Each;

class KernelRulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Configure({});
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void TearDown() override { EXPECT_EQ(cudaFree(data_), cudaSuccess); }

  int* const data_ = NewMemory<int>(512);
};

TEST_F(KernelRulesTest, EachThreadOfEachBlockRunsOnce) {
  const auto write = [](int* out) {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    out[block * 8 + thread] = static_cast<int>(block * 8 + thread);
  };
  Launch(write, dim3(2, 3), dim3(4, 2), nullptr, data_);

  const std::vector<int> found = Fetch(data_, 48, nullptr);

  for (int i = 0; i < 48; ++i) EXPECT_EQ(found[i], i);
}

TEST_F(KernelRulesTest, BarrierIsReachedByAllBeforeOneGoesOn) {
  const auto turn = [](int* out) {
    LOCKSTEP_CUDA_ON_CPU_SHARED(int, values, [128]);
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = values[127 - threadIdx.x];
  };
  for (const uint64_t seed : {0, 1, 2, 3}) {
    Configure({.seed = seed});
    Launch(turn, 1, 128, nullptr, data_);
    const std::vector<int> found = Fetch(data_, 128, nullptr);
    for (int i = 0; i < 128; ++i) EXPECT_EQ(found[i], 127 - i);
  }
}

TEST_F(KernelRulesTest, SharedMemoryBeginsAsNoNumber) {
  const auto read = [](int* out) {
    LOCKSTEP_CUDA_ON_CPU_SHARED(float, value, [1]);
    if (threadIdx.x == 0) out[blockIdx.x] = std::isnan(value[0]) ? 1 : 0;
    __syncthreads();
    if (threadIdx.x == 0) value[0] = 1;
  };
  Launch(read, 4, 32, nullptr, data_);

  EXPECT_THAT(Fetch(data_, 4, nullptr), Each(1));
}

TEST_F(KernelRulesTest, WarpGivesEachLaneTheValueOfAnother) {
  const auto sum = [](int* out) {
    int value = static_cast<int>(threadIdx.x);
    for (int distance = 16; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(0xffffffffu, value, distance);
    }
    out[threadIdx.x] = value;
  };
  Launch(sum, 1, 64, nullptr, data_);

  const std::vector<int> found = Fetch(data_, 64, nullptr);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(found[i], i < 32 ? 496 : 1520);
}

TEST_F(KernelRulesTest, ThreadsThatWaitInVainAreNamed) {
  const auto part = [](int*) {
    if (threadIdx.x < 3) return;
    if (threadIdx.x < 32) {
      __shfl_xor_sync(0xffffffffu, 1, 1);
    } else {
      __syncthreads();
    }
  };
  EXPECT_DEATH(
      {
        Launch(part, 1, 64, nullptr, data_);
        cudaStreamSynchronize(nullptr);
      },
      "wait for each other in vain; from thread 0 has returned, 3 is in a "
      "shuffle, 32 is in __syncthreads");
}

TEST_F(KernelRulesTest, LaunchThatNoDeviceTakesIsInvalid) {
  const auto nothing = [](int*) {};
  for (const auto& [grid, block] :
       std::vector<std::pair<dim3, dim3>>{{dim3(0), dim3(1)},
                                          {dim3(1), dim3(1025)},
                                          {dim3(1, 65536), dim3(1)},
                                          {dim3(1), dim3(1, 1, 65)}}) {
    Launch(nothing, grid, block, nullptr, data_);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  }
}

}  // namespace
}  // namespace lockstep::cuda_on_cpu
