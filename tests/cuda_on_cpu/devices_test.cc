// Several devices in one process.

#include <memory>
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

}  // namespace
}  // namespace lockstep::worker
