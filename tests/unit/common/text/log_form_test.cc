#include "common/text/log_form.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(LogFormTest, HasTimeLevelTaskAndText) {
  const auto form =
      ParseLogForm("2026-11-23T11:37:20.123 warning ps 0: slow: at last",
                   absl::UTCTimeZone());

  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3S", form->time, absl::UTCTimeZone()),
      "2026-11-23T11:37:20.123");
  EXPECT_EQ(form->level, LogLevel::kWarning);
  EXPECT_EQ(form->task, "ps 0");
  EXPECT_EQ(form->text, "slow: at last");
}

TEST(LogFormTest, ALevelThatIsLongerThanItsColumnIsRead) {
  const auto form =
      ParseLogForm("2026-11-23T11:37:20.123 critical worker 1: no memory",
                   absl::UTCTimeZone());

  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->level, LogLevel::kError);
  EXPECT_EQ(form->task, "worker 1");
  EXPECT_EQ(form->text, "no memory");
}

TEST(LogFormTest, OtherOutputHasNone) {
  for (const std::string line :
       {"", "2026-11-23T11:37:20.123", "Traceback (most recent call last)",
        "2026-13-23T11:37:20.123 info    worker 1: x",
        "2026-11-23T11:37:20.123 loud    worker 1: x",
        "2026-11-23 11:37:20.123 info    worker 1: x"}) {
    EXPECT_FALSE(ParseLogForm(line, absl::UTCTimeZone()).has_value()) << line;
  }
}

TEST(LogFormTest, TheHeadOfALineIsRead) {
  const absl::Time time = absl::FromUnixMillis(1795433840123);
  const std::string line =
      InfoLogHead(time, absl::UTCTimeZone()) + "lockstep run: begins";

  const auto form = ParseLogForm(line, absl::UTCTimeZone());

  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->time, time);
  EXPECT_EQ(form->level, LogLevel::kInfo);
  EXPECT_EQ(form->task, "");
  EXPECT_EQ(form->text, "lockstep run: begins");
}

TEST(TaskOfLogTest, IsANameWithAnIndex) {
  EXPECT_TRUE(IsTaskInLog("worker 12"));
  for (const char* name : {"", "worker", " 1", "worker -1", "worker x",
                           "Worker 1", "../a", "lockstep run"}) {
    EXPECT_FALSE(IsTaskInLog(name)) << name;
  }
}

TEST(TaskOfLogTest, IsCutOffTheText) {
  absl::string_view text = "worker 1: registered: at last";
  EXPECT_EQ(CutTaskOfLog(text), "worker 1");
  EXPECT_EQ(text, "registered: at last");
  EXPECT_EQ(CutTaskOfLog(text), "");
  EXPECT_EQ(text, "registered: at last");
}

TEST(LevelNamedTest, KnowsTheLevelsOfTheLog) {
  EXPECT_EQ(LevelNamed("trace"), LogLevel::kTrace);
  EXPECT_EQ(LevelNamed("debug"), LogLevel::kDebug);
  EXPECT_EQ(LevelNamed("info"), LogLevel::kInfo);
  EXPECT_EQ(LevelNamed("warning"), LogLevel::kWarning);
  EXPECT_EQ(LevelNamed("error"), LogLevel::kError);
  EXPECT_EQ(LevelNamed("critical"), LogLevel::kError);
  EXPECT_FALSE(LevelNamed("loud").has_value());
}

}  // namespace
}  // namespace lockstep
