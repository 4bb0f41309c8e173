#include "worker/device/compute_device.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
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

// What the log says, from level debug on, of opening "auto".
std::string LogOfAuto(const std::string& devices) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  auto logger = std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
  logger->set_level(spdlog::level::debug);
  logger->set_pattern("%l: %v");
  spdlog::set_default_logger(logger);
  EXPECT_OK(OpenComputeDevice("auto", 1, devices));
  spdlog::set_default_logger(before);
  return log.str();
}

TEST(ComputeDeviceTest, WhyAMachineHasNoGpuIsADetail) {
  if (WhyNoGpu().empty()) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: there is a GPU";
  }
  const testing::TempDir devices;

  EXPECT_EQ(LogOfAuto(devices.path()),
            "info: computes on cpu: no GPU here\ndebug: " + WhyNoGpu() + "\n");
}

TEST(ComputeDeviceTest, WhyAGpuThatIsThereIsNotTakenIsSaid) {
  if (WhyNoGpu().empty()) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: there is a GPU";
  }
  const testing::TempDir devices;
  std::ofstream(devices.Join("nvidiactl")) << "";

  EXPECT_EQ(LogOfAuto(devices.path()),
            "info: computes on cpu (" + WhyNoGpu() + ")\n");
}

TEST(ComputeDeviceTest, UnknownNameIsRefused) {
  EXPECT_THAT(OpenComputeDevice("tpu", 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tpu")));
}

}  // namespace
}  // namespace lockstep::worker
