// Several devices in one process.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "worker/compute/cuda/cuda_backend.h"

namespace lockstep::worker {
namespace {

TEST(DevicesTest, AThreadMayAlternateBetweenDevices) {
  cuda_on_cpu::Configure({.devices = 2});
  std::vector<std::unique_ptr<ComputeBackend>> backends;
  std::vector<Buffer> memory;
  for (const int device : {0, 1}) {
    auto made = MakeCudaBackend(device);
    ASSERT_TRUE(made.ok()) << made.status();
    auto buffer = (*made)->Allocate(4 * sizeof(float));
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    backends.push_back(*std::move(made));
    memory.push_back(*std::move(buffer));
  }
  for (const size_t device : {size_t{0}, size_t{1}, size_t{0}}) {
    const Tensor values(ElementType::kFloat32, {4}, memory[device].data());
    EXPECT_EQ(backends[device]->Relu(values, values), absl::OkStatus());
  }
  memory.clear();
  backends.clear();
  cuda_on_cpu::Configure({});
}

// The kernels are late, and the thread has selected the other device meanwhile.
// A kernel that came after the end of its memory would end the process.
TEST(DevicesTest, MemoryIsFreedAfterTheKernelsOfItsOwnDevice) {
  constexpr int kKernels = 50;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    cuda_on_cpu::Configure({.devices = 2, .seed = seed});
    auto first = MakeCudaBackend(0);
    ASSERT_TRUE(first.ok()) << first.status();
    auto second = MakeCudaBackend(1);
    ASSERT_TRUE(second.ok()) << second.status();
    auto memory = (*second)->Allocate(4 * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.status();
    const Tensor values(ElementType::kFloat32, {4}, memory->data());
    for (int i = 0; i < kKernels; ++i) {
      ASSERT_EQ((*second)->Relu(values, values), absl::OkStatus());
    }
    ASSERT_TRUE((*first)->Allocate(16).ok());

    *memory = Buffer();
  }
  cuda_on_cpu::Configure({});
}

// Memory of another device would be an error far from its cause.
TEST(DevicesTest, MemoryIsNotAllocatedOnADeviceThatCannotBeSelected) {
  cuda_on_cpu::Configure({.devices = 2});
  auto first = MakeCudaBackend(0);
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = MakeCudaBackend(1);
  ASSERT_TRUE(second.ok()) << second.status();
  cuda_on_cpu::SetFault({"cudaSetDevice", 1, cudaErrorInvalidDevice});

  EXPECT_THAT(std::string((*first)->Allocate(16).status().message()),
              ::testing::HasSubstr("cudaSetDevice"));

  cuda_on_cpu::ClearFault();
  EXPECT_EQ((*first)->Allocate(16).status(), absl::OkStatus());
  first->reset();
  second->reset();
  cuda_on_cpu::Configure({});
}

}  // namespace
}  // namespace lockstep::worker
