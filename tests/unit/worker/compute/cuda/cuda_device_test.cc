#include "worker/compute/cuda/cuda_device.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker::cuda {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// The chunks follow from the sizes alone, so that sums are the same each time.
TEST(CudaLaunchTest, FewRowsAreOneChunkAndManyAreNotTooMany) {
  EXPECT_EQ(SumChunks(0, 64), 1);
  EXPECT_EQ(SumChunks(511, 64), 1);
  EXPECT_EQ(SumChunks(512, 64), 2);
  EXPECT_EQ(SumChunks(int64_t{1} << 40, 64), 512);
  EXPECT_EQ(SumChunks(int64_t{1} << 40, 128), 256);
  EXPECT_EQ(SumChunks(int64_t{1} << 40, 1024), 64);
  EXPECT_EQ(SumChunks(int64_t{1} << 40, int64_t{1} << 20), 64);
}

TEST(CudaDeviceTest, WithoutADeviceTheMessageSaysWhatToDo) {
  const absl::StatusOr<CudaDevice> device = CudaDevice::Open();
  if (device.ok()) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: there is a GPU, "
                 << device->name();
  }

  EXPECT_THAT(device, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("cudaGetDeviceCount")));
}

}  // namespace
}  // namespace lockstep::worker::cuda
