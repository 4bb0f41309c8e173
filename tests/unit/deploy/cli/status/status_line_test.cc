#include "deploy/cli/status/status_line.h"

#include <cmath>
#include <limits>
#include <regex>

#include "deploy/cli/text/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kEta = absl::Seconds(12);

MemberStatus Worker(int index, int64_t accepted, int64_t stale, int waiting) {
  return {.task = "worker " + std::to_string(index),
          .state = MemberState::kAlive,
          .counts = WorkerCounts{.accepted = accepted,
                                 .stale = stale,
                                 .waiting = absl::Seconds(waiting)}};
}

JobStatus Training() {
  return {.job_name = "job",
          .state = JobState::kTraining,
          .step = 1234,
          .train_steps = 1500,
          .loss = 0.31234,
          .examples_per_second = 12345,
          .evaluation = Evaluation{.step = 1000, .accuracy = 0.89124},
          .members = {{.task = "ps 0", .state = MemberState::kAlive},
                      Worker(0, 412, 3, 2),
                      Worker(1, 410, 5, 1),
                      Worker(2, 411, 4, 13)}};
}

std::string Plain(const JobStatus& status, size_t columns) {
  return StatusLine(/*colour=*/false).Format(status, kEta, 0, columns);
}

std::string WithoutColours(const std::string& line) {
  return std::regex_replace(line, std::regex("\x1b\\[[0-9;]*m"), "");
}

TEST(StatusLineTest, WideTerminalsShowEverythingWithLabels) {
  EXPECT_EQ(Plain(Training(), 200),
            "step 1234/1500  loss 0.3123  12.3k examples/s  accuracy 0.8912  "
            "w0 412/3/2s  w1 410/5/1s  w2 411/4/13s  ETA 0:12");
}

TEST(StatusLineTest, TheFirstFigureOfAUsersEvaluatorIsInPlaceOfTheAccuracy) {
  JobStatus status = Training();
  status.evaluation->figures = {{"bleu", 0.25}, {"other", 1}};
  EXPECT_THAT(Plain(status, 200), HasSubstr("examples/s  bleu 0.2500  w0"));
  EXPECT_THAT(Plain(status, 79), HasSubstr("12.3k/s bleu 0.250 w"));
}

TEST(StatusLineTest, EightyColumnsShowEverythingThatMatters) {
  EXPECT_EQ(Plain(Training(), 79),
            "1234/1500 loss 0.312 12.3k/s acc 0.891 w 412/3/2s 410/5/1s "
            "411/4/13s ETA 0:12");
}

TEST(StatusLineTest, WaitingTimesGoBeforeCounts) {
  EXPECT_EQ(Plain(Training(), 72),
            "1234/1500 loss 0.312 12.3k/s acc 0.891 w 412/3 410/5 411/4 "
            "ETA 0:12");
}

TEST(StatusLineTest, ManyWorkersAreSummedUp) {
  JobStatus status = Training();
  status.members.clear();
  for (int i = 0; i < 64; ++i) status.members.push_back(Worker(i, 10, 1, 2));

  EXPECT_EQ(Plain(status, 79),
            "1234/1500 loss 0.312 12.3k/s acc 0.891 64w 640/64/128s ETA 0:12");
}

TEST(StatusLineTest, TheStepStaysLongest) {
  EXPECT_EQ(Plain(Training(), 50),
            "1234/1500 loss 0.312 12.3k/s acc 0.891 ETA 0:12");
  EXPECT_EQ(Plain(Training(), 42), "1234/1500 loss 0.312 acc 0.891 ETA 0:12");
  EXPECT_EQ(Plain(Training(), 30), "1234/1500 loss 0.312 ETA 0:12");
  EXPECT_EQ(Plain(Training(), 9), "1234/1500");
  EXPECT_EQ(Plain(Training(), 0), "");
}

TEST(StatusLineTest, NeverExceedsTheWidth) {
  JobStatus status = Training();
  status.step = std::numeric_limits<int64_t>::min();
  status.train_steps = std::numeric_limits<int64_t>::max();
  status.loss = std::numeric_limits<double>::max();
  status.examples_per_second = std::numeric_limits<double>::infinity();
  for (const JobState state :
       {JobState::kUnknown, JobState::kStarting, JobState::kTraining,
        JobState::kFinishing, JobState::kFailed}) {
    status.state = state;
    status.reason = std::string(500, 'x');
    for (size_t columns = 0; columns < 200; ++columns) {
      const std::string line =
          StatusLine(/*colour=*/true).Format(status, kEta, 0, columns);
      EXPECT_LE(WithoutColours(line).size(), columns) << line;
    }
  }
}

TEST(StatusLineTest, ColoursChangeNothingElse) {
  const std::string coloured =
      StatusLine(/*colour=*/true).Format(Training(), kEta, 0, 79);

  EXPECT_THAT(coloured, HasSubstr("\x1b["));
  EXPECT_EQ(WithoutColours(coloured), Plain(Training(), 79));
  EXPECT_THAT(Plain(Training(), 79), Not(HasSubstr("\x1b")));
}

TEST(StatusLineTest, ALongWaitTakesThePlaceOfTheWorkers) {
  JobStatus status = Training();
  status.waits = {{.owner = "step 1235",
                   .waits_for = "1 more gradient",
                   .since = absl::Seconds(5)}};

  EXPECT_EQ(Plain(status, 99),
            "1234/1500 step 1235 waits for 1 more gradient (5.0 s) loss 0.312 "
            "12.3k/s acc 0.891");
  EXPECT_EQ(Plain(status, 60),
            "1234/1500 step 1235 waits for 1 more gradient (5.0 s)");
  EXPECT_EQ(Plain(status, 50),
            "1234/1500 step 1235 waits for 1 more gradient (5.~");
}

TEST(StatusLineTest, APauseStaysLongestToo) {
  JobStatus status = Training();
  status.settings.paused = true;

  EXPECT_EQ(Plain(status, 200),
            "paused  step 1234/1500  loss 0.3123  accuracy 0.8912");
  EXPECT_EQ(Plain(status, 60),
            "paused  step 1234/1500  loss 0.3123  accuracy "
            "0.8912");
  EXPECT_EQ(Plain(status, 40), "paused 1234/1500 loss 0.312 acc 0.891");
  EXPECT_EQ(Plain(status, 20), "paused 1234/1500");

  status.waits = {{.owner = "the job",
                   .waits_for = "lockstep resume",
                   .since = absl::Seconds(10)}};
  EXPECT_EQ(Plain(status, 60),
            "paused 1234/1500 the job waits for lockstep resume (10 s)");
}

TEST(StatusLineTest, ALetterOfTwoBytesTakesOneColumn) {
  JobStatus status = Training();
  status.waits = {{.owner = "step 1235",
                   .waits_for = "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc",
                   .since = absl::Seconds(5)}};
  EXPECT_THAT(Plain(status, 200),
              HasSubstr("\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc (5.0 s)"));
  for (size_t columns = 20; columns < 100; ++columns) {
    EXPECT_LE(Columns(Plain(status, columns)), columns);
  }
}

TEST(StatusLineTest, AShortWaitIsNotWorthALine) {
  JobStatus status = Training();
  status.waits = {{.owner = "step 1235", .since = absl::Seconds(1)}};

  EXPECT_THAT(Plain(status, 79), Not(HasSubstr("waits")));
}

TEST(StatusLineTest, AStartSaysWhatItWaitsFor) {
  JobStatus status = {.state = JobState::kStarting, .train_steps = 100};
  status.waits = {{.owner = "chief",
                   .waits_for = "worker 2 to register",
                   .since = absl::Milliseconds(1500)}};

  EXPECT_EQ(Plain(status, 79),
            "starting  chief waits for worker 2 to register (1.5 s)");
}

TEST(StatusLineTest, OtherStatesAreSpeltOut) {
  JobStatus status = {.state = JobState::kFailed,
                      .reason = "ps 0\ndied",
                      .step = 7,
                      .train_steps = 100};
  EXPECT_EQ(Plain(status, 79), "failed  step 7/100  ps 0?died");

  status.state = JobState::kUnknown;
  EXPECT_THAT(Plain(status, 79), StartsWith("unknown  step 7/100"));
}

TEST(StatusLineTest, WhatIsNotKnownYetIsLeftOut) {
  const JobStatus status = {.state = JobState::kTraining, .train_steps = 100};

  EXPECT_EQ(StatusLine(false).Format(status, std::nullopt, 0, 79),
            "step 0/100");
}

TEST(StatusLineTest, ALossThatIsNoNumberShows) {
  JobStatus status = Training();
  status.loss = std::nan("");

  EXPECT_THAT(Plain(status, 79), HasSubstr("loss nan"));
}

TEST(StatusLineTest, RestartsShowAtTheEnd) {
  const StatusLine line(/*colour=*/false);

  EXPECT_THAT(line.Format(Training(), kEta, 1, 200), EndsWith("  1 restart"));
  EXPECT_THAT(line.Format(Training(), kEta, 2, 200), EndsWith("  2 restarts"));
  EXPECT_EQ(line.Format({.state = JobState::kStarting}, kEta, 2, 79),
            "starting  2 restarts");
}

}  // namespace
}  // namespace lockstep::cli
