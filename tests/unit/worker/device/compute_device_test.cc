#include "worker/device/compute_device.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ComputeDeviceTest, IsTheOneAskedFor) {
  const auto device = OpenComputeDevice("cpu", 1);

  ASSERT_OK(device);

  EXPECT_STREQ((*device)->name(), "cpu");
}

TEST(ComputeDeviceTest, AutoAlwaysFindsOne) {
  EXPECT_OK(OpenComputeDevice("auto", 1));
}

TEST(ComputeDeviceTest, UnknownNameIsRefused) {
  EXPECT_THAT(OpenComputeDevice("tpu", 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tpu")));
}

}  // namespace
}  // namespace lockstep
