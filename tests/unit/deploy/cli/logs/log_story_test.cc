#include "deploy/cli/logs/log_story.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Time At(int second) { return absl::FromUnixSeconds(second); }

LogLine Line(int second, const std::string& task, const std::string& text,
             LogLevel level = LogLevel::kInfo) {
  return {At(second), level, task, text};
}

std::vector<std::string> TextsOf(const std::vector<LogLine>& lines) {
  std::vector<std::string> texts;
  for (const LogLine& line : lines) texts.push_back(line.text);
  return texts;
}

TEST(LogStoryTest, LinesOfManyLogsComeInTheOrderOfTime) {
  LogStory story;
  story.Add({Line(1, "worker 0", "a"), Line(4, "worker 0", "d")});
  story.Add({Line(2, "ps 0", "b"), Line(3, "ps 0", "c")});
  EXPECT_THAT(TextsOf(story.Take(absl::InfiniteFuture())),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(story.Take(absl::InfiniteFuture()), IsEmpty());
}

TEST(LogStoryTest, LinesOfOneTimeKeepTheirOrder) {
  LogStory story;
  story.Add({Line(1, "ps 0", "a"), Line(1, "ps 0", "b"), Line(1, "ps 0", "c")});
  EXPECT_THAT(TextsOf(story.Take(absl::InfiniteFuture())),
              ElementsAre("a", "b", "c"));
}

TEST(LogStoryTest, NewLinesWaitForOlderOnesOfOtherLogs) {
  LogStory story;
  story.Add({Line(1, "ps 0", "a"), Line(5, "ps 0", "e")});
  EXPECT_THAT(TextsOf(story.Take(At(3))), ElementsAre("a"));
  story.Add({Line(4, "worker 0", "d")});
  EXPECT_THAT(TextsOf(story.Take(At(5))), ElementsAre("d", "e"));
}

TEST(LogFilterTest, ShowsTasksTypesLevelsAndTimes) {
  const LogLine line = Line(10, "worker 1", "x", LogLevel::kWarning);
  EXPECT_TRUE(LogFilter().Shows(line));
  EXPECT_TRUE(LogFilter{.tasks = {"worker 1"}}.Shows(line));
  EXPECT_TRUE((LogFilter{.tasks = {"ps 0", "worker"}}.Shows(line)));
  EXPECT_FALSE(LogFilter{.tasks = {"worker 11"}}.Shows(line));
  EXPECT_FALSE(LogFilter{.tasks = {"work"}}.Shows(line));
  EXPECT_FALSE(
      (LogFilter{.tasks = {"worker 1"}}.Shows(Line(10, "worker 11", "x"))));
  EXPECT_TRUE(LogFilter{.level = LogLevel::kWarning}.Shows(line));
  EXPECT_FALSE(LogFilter{.level = LogLevel::kError}.Shows(line));
  EXPECT_TRUE(LogFilter{.since = At(10)}.Shows(line));
  EXPECT_FALSE(LogFilter{.since = At(11)}.Shows(line));
}

TEST(ParseTaskTest, TakesATaskOrAType) {
  EXPECT_EQ(ParseTask("worker:1").value(), "worker 1");
  EXPECT_EQ(ParseTask("ps 0").value(), "ps 0");
  EXPECT_EQ(ParseTask("evaluator").value(), "evaluator");
  for (const char* text :
       {"", "worker:", "worker:x", "worker:-1", "node:1", "worker:1:2"}) {
    EXPECT_THAT(ParseTask(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("--task")))
        << text;
  }
}

TEST(ParseSinceTest, TakesAgesAndTimes) {
  absl::Time now;
  ASSERT_TRUE(absl::ParseTime("%Y-%m-%dT%H:%M:%S", "2026-11-23T12:00:00",
                              absl::UTCTimeZone(), &now, nullptr));
  const auto since = [&](const char* text) {
    const absl::StatusOr<absl::Time> time =
        ParseSince(text, now, absl::UTCTimeZone());
    return time.ok() ? absl::FormatTime("%Y-%m-%dT%H:%M:%S", *time,
                                        absl::UTCTimeZone())
                     : std::string(time.status().message());
  };
  EXPECT_EQ(since("10m"), "2026-11-23T11:50:00");
  EXPECT_EQ(since("2h"), "2026-11-23T10:00:00");
  EXPECT_EQ(since("11:37"), "2026-11-23T11:37:00");
  EXPECT_EQ(since("11:37:20"), "2026-11-23T11:37:20");
  EXPECT_EQ(since("2026-11-22T01:02"), "2026-11-22T01:02:00");
  EXPECT_EQ(since("2026-11-22T01:02:03"), "2026-11-22T01:02:03");
  EXPECT_THAT(since("yesterday"), HasSubstr("--since is \"yesterday\""));
  EXPECT_THAT(since("-5m"), HasSubstr("--since"));
}

TEST(ShownLineTest, HasTimeTaskAndText) {
  EXPECT_EQ(ShownLine(Line(3661, "worker 1", "hello"), 80, false,
                      absl::UTCTimeZone()),
            "01:01:01.000 worker 1  hello\n");
  EXPECT_EQ(ShownLine(Line(3661, "ps 0", "no", LogLevel::kError), 80, false,
                      absl::UTCTimeZone()),
            "01:01:01.000 ps 0  ERROR no\n");
}

TEST(ShownLineTest, ALineWithoutATimeSaysSo) {
  LogLine line = Line(0, "ps 0", "x");
  line.time = absl::InfinitePast();
  EXPECT_EQ(ShownLine(line, 80, false, absl::UTCTimeZone()),
            "--:--:--.---"
            " ps 0  x\n");
}

TEST(ShownLineTest, FitsInto60Columns) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "some words ";
  text += std::string(150, 'w');
  const std::string shown =
      ShownLine(Line(1, "worker 1", text), 60, false, absl::UTCTimeZone());
  std::string words;
  for (absl::string_view line : absl::StrSplit(shown, '\n')) {
    EXPECT_LE(line.size(), 60u) << line;
    words += std::string(line);
  }
  // Nothing is lost but spaces.
  const auto squeeze = [](std::string s) {
    s.erase(std::remove(s.begin(), s.end(), ' '), s.end());
    return s;
  };
  EXPECT_EQ(squeeze(words), squeeze("00:00:01.000worker1" + text));
}

TEST(ShownLineTest, NoCharacterIsBroken) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "\u00fc";
  // All remainders of the two bytes of each.
  for (const size_t columns : {50u, 51u}) {
    std::string shown = ShownLine(Line(1, "worker 1", text), columns, false,
                                  absl::UTCTimeZone());
    EXPECT_THAT(shown, HasSubstr("\n"));
    shown.erase(std::remove_if(shown.begin(), shown.end(),
                               [](char c) { return c == '\n' || c == ' '; }),
                shown.end());
    EXPECT_THAT(shown, HasSubstr(text));
  }
}

TEST(ShownLineTest, EachTaskHasItsColour) {
  const std::string one =
      ShownLine(Line(1, "worker 1", "x"), 80, true, absl::UTCTimeZone());
  const std::string two =
      ShownLine(Line(1, "worker 2", "x"), 80, true, absl::UTCTimeZone());
  EXPECT_THAT(one, HasSubstr("mworker 1\x1b[0m  x\n"));
  EXPECT_NE(one.substr(0, one.find("worker")),
            two.substr(0, two.find("worker")));
}

}  // namespace
}  // namespace lockstep::cli
