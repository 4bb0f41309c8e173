#include "worker/compute/cuda/cuda_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker::cuda {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDevice = "device 0 (some GPU)";
const CallSite kSite = {"cudaMemcpyAsync", "Upload", kDevice};

TEST(CudaStatusTest, SuccessIsOk) {
  EXPECT_OK(ToStatus(cudaSuccess, kSite));
  EXPECT_OK(ToStatus(CUBLAS_STATUS_SUCCESS, kSite));
}

TEST(CudaStatusTest, MessageNamesOperationCallAndDevice) {
  EXPECT_THAT(ToStatus(cudaErrorInvalidValue, kSite),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("Upload: cudaMemcpyAsync on device 0 (some "
                                 "GPU): cudaErrorInvalidValue")));
  EXPECT_THAT(ToStatus(CUBLAS_STATUS_INVALID_VALUE, kSite),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("CUBLAS_STATUS_INVALID_VALUE")));
}

// Unavailable is what ends a process with a code that asks for a restart.
TEST(CudaStatusTest, LostDeviceIsUnavailable) {
  for (const cudaError_t error :
       {cudaErrorIllegalAddress, cudaErrorECCUncorrectable,
        cudaErrorLaunchFailure, cudaErrorDevicesUnavailable}) {
    EXPECT_THAT(ToStatus(error, kSite), StatusIs(absl::StatusCode::kUnavailable,
                                                 HasSubstr("start it again")));
  }
}

TEST(CudaStatusTest, MemoryThatIsShortIsNamedWithWhatIsFree) {
  EXPECT_THAT(ToStatus(cudaErrorMemoryAllocation, kSite),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(OutOfMemory(100, 0, 0, kDevice).message(),
              Not(HasSubstr("free")));
  EXPECT_THAT(OutOfMemory(100, 70, 80, kDevice),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("100 bytes on device 0"),
                             HasSubstr("70 of 80 are free"))));
}

}  // namespace
}  // namespace lockstep::worker::cuda
