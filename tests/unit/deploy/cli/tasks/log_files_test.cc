#include "deploy/cli/tasks/log_files.h"

#include <filesystem>
#include <fstream>

#include "common/text/log_form.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(NewRunTest, IsMarkedBehindLinesOfAnEarlierOne) {
  TempDir parent;
  const std::string path = parent.Join("log");
  const absl::Time now = absl::FromCivil(absl::CivilSecond(2026, 1, 2, 3, 4, 5),
                                         absl::LocalTimeZone());
  MarkNewRun(path, now);
  EXPECT_EQ(FileSize(path), 0);
  Write(path, "old\n");

  MarkNewRun(path, now);

  EXPECT_THAT(ReadLastLines(path, 0, 9, 100),
              ElementsAre("old",
                          "2026-01-02T03:04:05.000 info    lockstep run: a new "
                          "run begins"));
  EXPECT_TRUE(ParseLogForm(ReadLastLines(path, 0, 1, 100).front(),
                           absl::LocalTimeZone())
                  .has_value());
}

TEST(LastLinesTest, AreThoseOfThisRun) {
  TempDir parent;
  const std::string path = parent.Join("log");
  Write(path, "old\n");
  const int64_t start = FileSize(path);
  std::ofstream(path, std::ios::app) << "one\ntwo\n\nthree\nfo\x1bur";

  EXPECT_THAT(ReadLastLines(path, start, 3, 100),
              ElementsAre("two", "three", "fo?ur"));
  EXPECT_THAT(ReadLastLines(path, start, 9, 2),
              ElementsAre("o~", "t~", "t~", "f~"));
  EXPECT_THAT(ReadLastLines(path, FileSize(path), 3, 100), IsEmpty());
}

TEST(LastLinesTest, OfAHugeLogOnlyTheEndIsRead) {
  TempDir parent;
  const std::string path = parent.Join("log");
  Write(path, std::string(5 << 20, 'x') + "\nlast\n");

  EXPECT_THAT(ReadLastLines(path, 0, 1, 100), ElementsAre("last"));
  EXPECT_THAT(ReadLastLines(path, 0, 10, 100), SizeIs(2));
}

TEST(LastLinesTest, AMissingLogHasNone) {
  EXPECT_THAT(ReadLastLines("/nowhere/at/all", 0, 5, 100), IsEmpty());
  EXPECT_EQ(FileSize("/nowhere/at/all"), 0);
}

TEST(RotateLogTest, WhatAProcessWritesGoesOnInTheEmptiedLog) {
  TempDir parent;
  const std::string path = parent.Join("log");
  Write(path + ".1", "older\n");
  std::ofstream process(path, std::ios::app);
  process << "old\n" << std::flush;

  EXPECT_THAT(RotateLog(path), IsOk());
  process << "new\n" << std::flush;

  EXPECT_THAT(ReadTextFile(path), IsOkAndHolds("new\n"));
  EXPECT_THAT(ReadTextFile(path + ".1"), IsOkAndHolds("old\n"));
}

TEST(RotateLogTest, AMissingLogIsNamed) {
  EXPECT_THAT(RotateLog("/nowhere/at/all"),
              StatusIs(kInvalid, HasSubstr("/nowhere/at/all")));
}

TEST(TextFileTest, IsReadAsItWasWritten) {
  TempDir parent;
  const std::string path = parent.Join("file");

  EXPECT_THAT(WriteTextFile(path, "first"), IsOk());
  EXPECT_THAT(WriteTextFile(path, "second"), IsOk());

  EXPECT_THAT(ReadTextFile(path), IsOkAndHolds("second"));
}

TEST(TextFileTest, DirectoryOrMissingFileIsRefused) {
  TempDir parent;

  EXPECT_THAT(ReadTextFile(parent.path()), StatusIs(kInvalid));
  EXPECT_THAT(ReadTextFile("/nowhere/at/all"),
              StatusIs(kInvalid, HasSubstr("/nowhere/at/all")));
  EXPECT_THAT(WriteTextFile("/nowhere/at/all", "x"),
              StatusIs(kInvalid, HasSubstr("/nowhere/at/all")));
}

TEST(TextFileTest, MissingFileOfAFlagIsRefusedWithTheFlag) {
  TempDir parent;
  const std::string path = parent.Join("file");
  Write(path, "text");

  EXPECT_THAT(ReadFlagFile("--job", path), IsOkAndHolds("text"));
  EXPECT_THAT(ReadFlagFile("--job", "/nowhere/at/all"),
              StatusIs(kInvalid,
                       "--job /nowhere/at/all: cannot be read: No such file "
                       "or directory"));
}

TEST(TextFileTest, AHugeFileIsNotRead) {
  TempDir parent;
  const std::string path = parent.Join("file");
  Write(path, "x");
  std::filesystem::resize_file(path, int64_t{1} << 34);

  EXPECT_THAT(ReadTextFile(path), StatusIs(kInvalid, HasSubstr("larger")));
}

}  // namespace
}  // namespace lockstep::cli
