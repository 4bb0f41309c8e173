#include "common/log.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(LogTest, LineHasTimeLevelTaskAndText) {
  CaptureStderr();
  ASSERT_OK(InitLog("worker 1", "info"));

  spdlog::info("joined {}", 7);

  EXPECT_THAT(GetCapturedStderr(),
              MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9:.]+ info +worker 1: "
                           "joined 7\n"));
}

TEST(LogTest, LinesBelowTheLevelAreLeftOut) {
  CaptureStderr();
  ASSERT_OK(InitLog("ps 0", "warning"));

  spdlog::info("hidden");
  spdlog::warn("shown");

  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr("shown"), Not(HasSubstr("hidden"))));
}

TEST(LogTest, EveryLevelOfTheMessageIsKnown) {
  for (const char* level : {"trace", "debug", "info", "warning", "error"}) {
    EXPECT_OK(InitLog("chief", level));
  }
}

TEST(LogTest, UnknownLevelIsRefusedAndTheLogStays) {
  CaptureStderr();
  ASSERT_OK(InitLog("chief", "info"));

  for (const char* level : {"", "loud", "INFO", "off"}) {
    EXPECT_THAT(InitLog("other", level),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("--log_level is \"" +
                                         std::string(level) + "\""),
                               HasSubstr("trace, debug, info"))));
  }

  spdlog::info("still here");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("chief: still here"));
}

}  // namespace
}  // namespace lockstep
