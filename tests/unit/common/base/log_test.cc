#include "common/base/log.h"

#include <stdlib.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/text/log_form.h"
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

TEST(LogTest, LinesOfAllLevelsHaveTheFormThatReadersOfLogsParse) {
  const absl::Time begin = absl::Now() - absl::Milliseconds(1);
  CaptureStderr();
  ASSERT_OK(InitLog("worker 1", "trace"));

  spdlog::trace("0: begins");
  spdlog::debug("1: begins");
  spdlog::info("2: begins");
  spdlog::warn("3: begins");
  spdlog::error("4: begins");
  spdlog::critical("5: begins");
  spdlog::default_logger()->flush();

  const std::string written = GetCapturedStderr();
  ASSERT_OK(InitLog("worker 1", "info"));
  const std::vector<absl::string_view> lines =
      absl::StrSplit(written, '\n', absl::SkipEmpty());
  const std::vector<LogLevel> levels = {LogLevel::kTrace, LogLevel::kDebug,
                                        LogLevel::kInfo,  LogLevel::kWarning,
                                        LogLevel::kError, LogLevel::kError};
  ASSERT_EQ(lines.size(), levels.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto form = ParseLogForm(lines[i], absl::LocalTimeZone());
    ASSERT_TRUE(form.has_value()) << lines[i];
    EXPECT_EQ(form->level, levels[i]) << lines[i];
    EXPECT_EQ(form->task, "worker 1") << lines[i];
    EXPECT_EQ(form->text, absl::StrCat(i, ": begins"));
    EXPECT_GE(form->time, begin) << lines[i];
    EXPECT_LE(form->time, absl::Now()) << lines[i];
  }
}

TEST(LogTest, LinesBelowTheLevelAreLeftOut) {
  CaptureStderr();
  ASSERT_OK(InitLog("ps 0", "warning"));

  spdlog::info("hidden");
  spdlog::warn("shown");

  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr("shown"), Not(HasSubstr("hidden"))));
}

TEST(LogTest, SubjectIsWhatWasSaidLast) {
  ASSERT_OK(InitLog("ps 0", "info"));
  SetLogJob("fashion");
  SetLogStep(7);
  SetLogStep(8);

  const LogSubject subject = CurrentLogSubject();

  EXPECT_EQ(subject.task, "ps 0");
  EXPECT_EQ(subject.job, "fashion");
  EXPECT_EQ(subject.step, 8);
}

TEST(LogTest, StandardErrorIsUsedWhereTheJournalReadsSomethingElse) {
  CaptureStderr();
  setenv("JOURNAL_STREAM", "1:1", 1);
  ASSERT_OK(InitLog("ps 0", "info"));
  unsetenv("JOURNAL_STREAM");

  spdlog::info("here");

  EXPECT_THAT(GetCapturedStderr(), HasSubstr("ps 0: here"));
}

TEST(LogTest, ThreadsMayLogWhileItIsPreparedAgain) {
  ASSERT_OK(InitLog("worker 0", "info"));
  std::atomic<bool> done = false;
  CaptureStderr();
  std::thread thread([&] {
    while (!done) spdlog::info("a line");
  });

  for (int i = 0; i < 100; ++i) EXPECT_OK(InitLog("worker 1", "info"));

  done = true;
  thread.join();
  spdlog::info("the end");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("worker 1: the end"));
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
