#include "deploy/cli/logs/log_tail.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "deploy/cli/tasks/log_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> TextsOf(const std::vector<LogLine>& lines) {
  std::vector<std::string> texts;
  for (const LogLine& line : lines) texts.push_back(line.text);
  return texts;
}

class FollowedLogTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  void Append(const std::string& name, const std::string& text) {
    std::ofstream(Path(name), std::ios::app) << text;
  }
  std::string Line(const std::string& text) const {
    return "2026-11-23T11:37:20.123 info    worker 1: " + text + "\n";
  }

  testing::TempDir dir_;
  FollowedLog tail_{Path("worker-1.log"), "worker 1", absl::UTCTimeZone()};
};

TEST_F(FollowedLogTest, ReadsWhatIsNew) {
  EXPECT_THAT(tail_.Poll(), IsEmpty());
  Append("worker-1.log", Line("one") + Line("two"));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("one", "two"));
  EXPECT_THAT(tail_.Poll(), IsEmpty());
  Append("worker-1.log", Line("three").substr(0, 40));
  EXPECT_THAT(tail_.Poll(), IsEmpty());
  Append("worker-1.log", Line("three").substr(40));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("three"));
}

TEST_F(FollowedLogTest, BeginsWithTheLogThatWasMovedAside) {
  Append("worker-1.log.1", Line("old"));
  Append("worker-1.log", Line("new"));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("old", "new"));
}

TEST_F(FollowedLogTest, NoLineIsLostOrRepeatedWhenALogIsMovedAside) {
  Append("worker-1.log", Line("one"));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("one"));
  Append("worker-1.log", Line("two"));
  ASSERT_OK(RotateLog(Path("worker-1.log")));
  Append("worker-1.log", Line("three"));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("two", "three"));
}

// RotateLog() copies the log before it empties it.
TEST_F(FollowedLogTest, ALogThatIsBeingMovedAsideIsReadOnce) {
  Append("worker-1.log", Line("one"));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("one"));
  Append("worker-1.log", Line("two"));
  std::filesystem::copy_file(Path("worker-1.log"), Path("worker-1.log.1"));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("two"));
  std::filesystem::resize_file(Path("worker-1.log"), 0);
  Append("worker-1.log", Line("three"));
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("three"));
}

TEST_F(FollowedLogTest, ATaskThatIsStartedAgainGoesOnInItsLog) {
  Append("worker-1.log", Line("one") + "dies in the mid");
  EXPECT_THAT(TextsOf(tail_.Poll()), ElementsAre("one"));
  Append("worker-1.log", "dle\n" + Line("again"));
  EXPECT_THAT(TextsOf(tail_.Poll()),
              ElementsAre("dies in the middle", "again"));
}

TEST_F(FollowedLogTest, TheRestIsALineWithoutEnd) {
  Append("worker-1.log", "torn");
  EXPECT_THAT(tail_.Poll(), IsEmpty());
  EXPECT_THAT(TextsOf(tail_.Rest()), ElementsAre("torn"));
}

TEST_F(FollowedLogTest, ARunHasALogForEachTaskAlsoALaterOne) {
  RunLogs logs(dir_.path(), absl::UTCTimeZone());
  EXPECT_THAT(logs.Poll(), IsEmpty());
  EXPECT_TRUE(logs.empty());
  Append("worker-1.log", Line("one"));
  Append("result.json", "{}\n");
  Append("worker-1.log.1", "");
  Append("notes.log", "no task\n");
  EXPECT_THAT(TextsOf(logs.Poll()), ElementsAre("one"));
  Append("ps-0.log", "its output\n");
  Append("worker-1.log", Line("two"));
  EXPECT_THAT(TextsOf(logs.Poll()), UnorderedElementsAre("its output", "two"));
  EXPECT_FALSE(logs.empty());
}

}  // namespace
}  // namespace lockstep::cli
