#include "worker/compute/cuda/cuda_recording.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker::cuda {
namespace {

using ::testing::StartsWith;

const std::string kDevice = "device 0 (some GPU)";

// The default stream cannot be captured, with a device or without.
TEST(CudaRecordingTest, StreamThatCannotBeCapturedIsAnErrorThatSaysWhere) {
  EXPECT_THAT(std::string(BeginCapture(nullptr, kDevice).message()),
              StartsWith("Record: cudaStreamBeginCapture on device 0"));
}

TEST(CudaRecordingTest, EndWithoutABeginningIsAnErrorThatSaysWhere) {
  EXPECT_THAT(std::string(EndCapture(nullptr, kDevice).status().message()),
              StartsWith("Record: cudaStreamEndCapture on device 0"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
