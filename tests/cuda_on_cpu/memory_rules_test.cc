#include <cuda_runtime.h>

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/test_kernel.h"

namespace lockstep::cuda_on_cpu {
namespace {

class MemoryRulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Configure({});
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(MemoryRulesTest, HostThatTouchesADeviceFaultsWithWords) {
  const float* data = NewMemory<float>(4);

  EXPECT_DEATH(std::exit(data[0] > 0 ? 1 : 0),
               "the host touched memory of a device");

  EXPECT_EQ(cudaFree(const_cast<float*>(data)), cudaSuccess);
}

TEST_F(MemoryRulesTest, NewMemoryIsNoNumber) {
  double* data = NewMemory<double>(3);
  for (const double value : Fetch(data, 3, nullptr)) {
    EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(MemoryRulesTest, KernelThatLeavesItsMemoryIsFound) {
  float* data = NewMemory<float>(3);
  const auto write = [](float* out) { out[64] = 1; };

  EXPECT_DEATH(
      {
        Launch(write, 1, 1, nullptr, data);
        cudaStreamSynchronize(nullptr);
      },
      "beyond its end|use-after-poison");
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(MemoryRulesTest, KernelWithMemoryOfTheHostLosesTheDevice) {
  float value = 0;
  Launch([](float* out) { *out = 1; }, 1, 1, nullptr, &value);

  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "it stays";
}

TEST_F(MemoryRulesTest, ArgumentsAreChecked) {
  float* data = NewMemory<float>(4);
  float host[8] = {};

  EXPECT_EQ(cudaMemcpyAsync(data, host, sizeof(host), cudaMemcpyDefault),
            cudaErrorInvalidValue)
      << "too many bytes";
  EXPECT_EQ(cudaMemcpyAsync(data, host, 4, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue)
      << "wrong direction";
  EXPECT_EQ(cudaMemset2DAsync(data, 2, 0, 4, 2), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaGetLastError(), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "it is taken";
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue) << "twice";
}

TEST_F(MemoryRulesTest, PinnedPagesArePinnedOnce) {
  alignas(4096) static char memory[8192];
  EXPECT_EQ(cudaHostRegister(memory, 100, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(memory + 200, 100, 0),
            cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostRegister(memory + 4096, 100, 0), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(memory), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(memory + 4096), cudaSuccess);
}

TEST_F(MemoryRulesTest, MemoryOfEachDeviceRunsShort) {
  Configure({.devices = 2, .memory = 1000});
  void* data = nullptr;
  void* other = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 600), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&other, 600), cudaErrorMemoryAllocation);
  size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, 400u);
  EXPECT_EQ(total, 1000u);

  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&other, 600), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);

  EXPECT_EQ(cudaFree(other), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

}  // namespace
}  // namespace lockstep::cuda_on_cpu
