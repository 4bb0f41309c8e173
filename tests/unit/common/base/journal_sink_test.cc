#include "common/base/journal_sink.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/logger.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

using Fields = std::vector<std::string>;

// A logger whose entries go to `entries`, or which cannot send.
std::shared_ptr<spdlog::logger> MakeLogger(std::vector<Fields>& entries,
                                           LogSubject& subject,
                                           bool works = true) {
  auto logger = std::make_shared<spdlog::logger>(
      "worker 1",
      std::make_shared<JournalSink>([&subject] { return subject; },
                                    [&entries, works](const Fields& fields) {
                                      if (works) entries.push_back(fields);
                                      return works;
                                    }));
  logger->set_pattern("%n: %v");
  logger->set_level(spdlog::level::trace);
  return logger;
}

TEST(JournalSinkTest, EntryHasFieldsForTaskJobAndStep) {
  std::vector<Fields> entries;
  LogSubject subject{"worker 1", "fashion", 7};

  MakeLogger(entries, subject)->info("joined {}", 3);

  EXPECT_THAT(entries, ElementsAre(UnorderedElementsAre(
                           "MESSAGE=worker 1: joined 3", "PRIORITY=6",
                           "LOCKSTEP_TASK=worker 1", "LOCKSTEP_JOB=fashion",
                           "LOCKSTEP_STEP=7")));
}

TEST(JournalSinkTest, WhatIsNotKnownYetHasNoField) {
  std::vector<Fields> entries;
  LogSubject subject{"ps 0"};

  MakeLogger(entries, subject)->info("starts");

  EXPECT_THAT(entries, ElementsAre(UnorderedElementsAre(
                           "MESSAGE=worker 1: starts", "PRIORITY=6",
                           "LOCKSTEP_TASK=ps 0")));
}

TEST(JournalSinkTest, EachEntryHasTheStepOfItsTime) {
  std::vector<Fields> entries;
  LogSubject subject{"worker 1", "fashion", 0};
  const auto logger = MakeLogger(entries, subject);

  logger->info("one");
  subject.step = 1;
  logger->info("two");

  EXPECT_THAT(entries, ElementsAre(Contains("LOCKSTEP_STEP=0"),
                                   Contains("LOCKSTEP_STEP=1")));
}

TEST(JournalSinkTest, PrioritiesAreThoseOfSyslog) {
  std::vector<Fields> entries;
  LogSubject subject;
  const auto logger = MakeLogger(entries, subject);

  logger->debug("");
  logger->info("");
  logger->warn("");
  logger->error("");
  logger->critical("");

  EXPECT_THAT(entries,
              ElementsAre(Contains("PRIORITY=7"), Contains("PRIORITY=6"),
                          Contains("PRIORITY=4"), Contains("PRIORITY=3"),
                          Contains("PRIORITY=2")));
}

// An entry's fields end by their length, so nothing has to be escaped.
TEST(JournalSinkTest, LineOfSeveralLinesStaysOneEntry) {
  std::vector<Fields> entries;
  LogSubject subject;

  MakeLogger(entries, subject)->info("one\nPRIORITY=0");

  EXPECT_THAT(entries,
              ElementsAre(Contains("MESSAGE=worker 1: one\nPRIORITY=0")));
}

TEST(JournalSinkTest, LineThatTheJournalDoesNotTakeGoesToStandardError) {
  std::vector<Fields> entries;
  LogSubject subject;
  CaptureStderr();

  MakeLogger(entries, subject, /*works=*/false)->info("kept");

  EXPECT_EQ(GetCapturedStderr(), "worker 1: kept\n");
}

TEST(JournalSinkTest, OnlyTheFileOfJournalStreamIsTheJournals) {
  struct stat file = {};
  file.st_dev = 10;
  file.st_ino = 1234;

  EXPECT_TRUE(IsJournalStream("10:1234", file));
  for (const char* other : {"", "10", "10:", "10:123", "10:12345", "11:1234",
                            "1234:10", "10:1234 "}) {
    EXPECT_FALSE(IsJournalStream(other, file)) << other;
  }
}

}  // namespace
}  // namespace lockstep
