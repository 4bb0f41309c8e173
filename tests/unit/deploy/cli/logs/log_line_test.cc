#include "deploy/cli/logs/log_line.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

MATCHER_P4(Is, time, level, task, text, "is this line") {
  return absl::FormatTime("%H:%M:%E3S", arg.time, absl::UTCTimeZone()) ==
             time &&
         arg.level == level && arg.task == task && arg.text == text;
}

LogReader Reader() {
  return LogReader("worker 1", absl::InfinitePast(), absl::UTCTimeZone());
}

constexpr char kInfo[] =
    "2026-11-23T11:37:20.123 info    worker 1: registered: at last\n";

TEST(LogReaderTest, ReadsTimeLevelTaskAndText) {
  LogReader reader = Reader();
  EXPECT_THAT(reader.Read(kInfo),
              ElementsAre(Is("11:37:20.123", LogLevel::kInfo, "worker 1",
                             "registered: at last")));
  EXPECT_THAT(
      reader.Read("2026-11-23T11:37:21.000 warning ps 0: slow\n"
                  "2026-11-23T11:37:22.000 error   chief 0: failed\n"),
      ElementsAre(Is("11:37:21.000", LogLevel::kWarning, "ps 0", "slow"),
                  Is("11:37:22.000", LogLevel::kError, "chief 0", "failed")));
}

TEST(LogReaderTest, OtherOutputBelongsToTheLineBefore) {
  LogReader reader = Reader();
  const std::vector<LogLine> lines = reader.Read(
      "2026-11-23T11:37:22.000 error   worker 1: failed\n"
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 3\n");
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[2], Is("11:37:22.000", LogLevel::kError, "worker 1",
                           "  File \"train.py\", line 3"));
}

TEST(LogReaderTest, ALineComesWhenItIsComplete) {
  const std::string line = kInfo;
  for (size_t cut = 0; cut < line.size(); ++cut) {
    LogReader reader = Reader();
    EXPECT_THAT(reader.Read(line.substr(0, cut)), IsEmpty()) << cut;
    EXPECT_THAT(reader.Read(line.substr(cut)), SizeIs(1)) << cut;
  }
}

TEST(LogReaderTest, ATornLastLineComesAtTheEnd) {
  LogReader reader = Reader();
  EXPECT_THAT(reader.Read("2026-11-23T11:37:20.123 info    worker 1: dies whi"),
              IsEmpty());
  const auto last = reader.End();
  ASSERT_TRUE(last.has_value());
  EXPECT_THAT(*last,
              Is("11:37:20.123", LogLevel::kInfo, "worker 1", "dies whi"));
  EXPECT_FALSE(reader.End().has_value());
}

TEST(LogReaderTest, AHugeLineIsCutAndTheNextOneIsWhole) {
  LogReader reader = Reader();
  std::vector<LogLine> lines;
  for (int i = 0; i < 100; ++i) {
    for (LogLine& line : reader.Read(std::string(10000, 'x'))) {
      lines.push_back(std::move(line));
    }
  }
  EXPECT_THAT(lines, IsEmpty());
  lines = reader.Read(std::string("y\n") + kInfo);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].text, std::string(kLongestLine, 'x'));
  EXPECT_THAT(lines[1], Is("11:37:20.123", LogLevel::kInfo, "worker 1",
                           "registered: at last"));
}

TEST(LogReaderTest, BytesThatControlATerminalAreReplaced) {
  LogReader reader = Reader();
  EXPECT_EQ(reader.Read("a\x1b[2Jb\xff\n")[0].text, "a?[2Jb?");
}

TEST(LogReaderTest, EmptyLinesAreLeftOut) {
  LogReader reader = Reader();
  EXPECT_THAT(reader.Read("\n  \n\r\n"), IsEmpty());
}

TEST(LogReaderTest, WhatIsAlmostALogLineIsText) {
  for (const std::string text :
       {"2026-11-23T11:37:20.123",
        "2026-13-23T11:37:20.123 info    worker 1: x",
        "2026-11-23T11:37:20.123 loud    worker 1: x",
        "2026-11-23 11:37:20.123 info    worker 1: x"}) {
    LogReader reader = Reader();
    EXPECT_EQ(reader.Read(text + "\n")[0].text, text);
  }
}

TEST(FromJournalTest, ReadsTheFieldsOfJournalSink) {
  const auto line = FromJournal(
      R"({"__REALTIME_TIMESTAMP":"1795433840123000","PRIORITY":"4",)"
      R"("LOCKSTEP_TASK":"ps 1","MESSAGE":"ps 1: is silent"})");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(absl::ToUnixMicros(line->time), 1795433840123000);
  EXPECT_EQ(line->level, LogLevel::kWarning);
  EXPECT_EQ(line->task, "ps 1");
  EXPECT_EQ(line->text, "is silent");
}

TEST(FromJournalTest, OtherEntriesAreNoLines) {
  for (
      const char* json :
      {"", "no json", "[]", "{}", R"({"__REALTIME_TIMESTAMP":"x"})",
       R"({"__REALTIME_TIMESTAMP":"1","MESSAGE":"Started Lockstep."})",
       R"({"__REALTIME_TIMESTAMP":"1","MESSAGE":[1,2],"LOCKSTEP_TASK":"ps 1"})",
       R"({"__REALTIME_TIMESTAMP":"1","MESSAGE":"x","LOCKSTEP_TASK":"../a"})"}) {
    EXPECT_FALSE(FromJournal(json).has_value()) << json;
  }
}

}  // namespace
}  // namespace lockstep::cli
