#include "deploy/cli/status/status_report.h"

#include <limits>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

JobStatus Sample() {
  return {
      .job_name = "fashion",
      .state = JobState::kTraining,
      .step = 1234,
      .train_steps = 1500,
      .training_time = absl::Milliseconds(41'240),
      .loss = 0.31234,
      .examples_per_second = 12345.6,
      .evaluation = Evaluation{.step = 1000, .accuracy = 0.89124},
      .members = {{.task = "ps 0",
                   .state = MemberState::kAlive,
                   .since_heartbeat = absl::Milliseconds(200)},
                  {.task = "worker 0",
                   .state = MemberState::kAlive,
                   .since_heartbeat = absl::Milliseconds(300),
                   .counts = WorkerCounts{.passes = 415,
                                          .accepted = 412,
                                          .stale = 3,
                                          .waiting = absl::Milliseconds(2100),
                                          .activity = "waits for a token",
                                          .activity_age = absl::Seconds(1)}},
                  {.task = "worker 1", .state = MemberState::kMissing}},
      .waits = {{"step 1235 on ps 0", "1 more gradient; worker 1",
                 absl::Seconds(5)}},
      .last_checkpoint_step = 1000};
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n');
}

TEST(StepTextTest, NamesGradientsOrMicroBatches) {
  EXPECT_EQ(StepText({.replicas_to_aggregate = 3}), "replicas_to_aggregate 3");
  // Four pushes are no number of workers.
  EXPECT_EQ(StepText({.replicas_to_aggregate = 4,
                      .micro_batches_per_step = 8,
                      .micro_batches_per_push = 2}),
            "micro_batches_per_step 8, micro_batches_per_push 2");
}

TEST(StatusReportTest, RateOfAScheduleIsShownBesideItsBase) {
  JobStatus status;
  status.settings.learning_rate = 0.5;
  status.settings.learning_rate_now = 0.5;
  EXPECT_THAT(FormatStatusReport(status, 80), Not(HasSubstr("learning_rate")));
  status.settings.learning_rate_now = 0.25;
  EXPECT_THAT(FormatStatusReport(status, 80),
              HasSubstr("learning_rate 0.5, by its schedule 0.25"));
}

TEST(DoneLineTest, HasTheFiguresOfTheLastAnswer) {
  JobStatus status = {
      .state = JobState::kDone,
      .step = 1500,
      .training_time = absl::Milliseconds(61'270),
      .loss = 0.20842,
      .evaluation = Evaluation{.step = 1500, .accuracy = 0.89124}};
  EXPECT_EQ(FormatDoneLine(status),
            "done: step 1500, loss 0.2084, test accuracy 0.8912, 61.3 s");

  status.evaluation->auc = 0.98104;
  EXPECT_EQ(FormatDoneLine(status),
            "done: step 1500, loss 0.2084, test accuracy 0.8912, AUC 0.9810, "
            "61.3 s");

  status.loss = 0.31234;
  status.reason = "train_steps reached";
  EXPECT_EQ(FormatDoneLine(status),
            "done: step 1500, loss 0.3123, test accuracy 0.8912, AUC 0.9810, "
            "61.3 s; train_steps reached");
  status.loss = 0.20842;
  status.reason = "";
  const Evaluation score = *status.evaluation;
  status.evaluation->figures = {{"perplexity", 12.5}, {"bleu", 0.25}};
  EXPECT_EQ(FormatDoneLine(status),
            "done: step 1500, loss 0.2084, perplexity 12.5000, bleu 0.2500, "
            "61.3 s");
  status.evaluation = score;

  status.evaluation.reset();
  EXPECT_EQ(FormatDoneLine(status), "done: step 1500, loss 0.2084, 61.3 s");
}

TEST(DoneLineTest, SaysWhichStepAnOlderScoreIsOf) {
  EXPECT_EQ(
      FormatDoneLine({.state = JobState::kDone,
                      .step = 1500,
                      .evaluation = Evaluation{.step = 1000, .accuracy = 0.5}}),
      "done: step 1500, test accuracy 0.5000 at step 1000, 0.0 s");
}

TEST(DoneLineTest, SaysThatTheInputHasEnded) {
  EXPECT_EQ(FormatDoneLine({.state = JobState::kDone,
                            .step = 99,
                            .train_steps = 10000,
                            .training_time = absl::Seconds(2),
                            .loss = 0.5}),
            "done: step 99 of 10000, since the input has ended, loss 0.5000, "
            "2.0 s");
}

TEST(DoneLineTest, AChiefThatHasMadeNoStepKnowsNoLoss) {
  EXPECT_EQ(FormatDoneLine({.state = JobState::kDone, .step = 200}),
            "done: step 200, 0.0 s");
}

TEST(DoneLineTest, SaysHowManyWordsASecondThereWere) {
  const JobStatus status = {.state = JobState::kDone,
                            .step = 1500,
                            .training_time = absl::Seconds(60),
                            .examples_per_second = 52000,
                            .example_unit = "words"};
  EXPECT_EQ(FormatDoneLine(status), "done: step 1500, 52000 words/s, 60.0 s");
}

TEST(DoneLineTest, SaysThatALaterAnswerWasMissed) {
  const JobStatus status = {.state = JobState::kTraining, .step = 1490};

  EXPECT_EQ(FormatDoneLine(status), "done: step 1490 when last asked, 0.0 s");
}

TEST(WorkerSummaryTest, HasALineForEachWorker) {
  EXPECT_EQ(FormatWorkerSummary(Sample(), 80),
            "worker  passes  accepted  stale  waited\n"
            "0          415       412      3   2.1 s\n"
            "1            0         0      0   0.0 s\n");
}

TEST(WorkerSummaryTest, IsEmptyWithoutWorkers) {
  EXPECT_EQ(FormatWorkerSummary(JobStatus(), 80), "");
}

TEST(StatusReportTest, AJobThatDoesNotCountItsExamplesHasNoSpeed) {
  JobStatus status = Sample();
  status.examples_per_second = 0;
  EXPECT_THAT(FormatStatusReport(status, 80),
              HasSubstr("\nloss 0.3123, test accuracy 0.8912 at step 1000\n"));
}

TEST(StatusReportTest, SaysHowEveryMemberDoes) {
  EXPECT_EQ(
      FormatStatusReport(Sample(), 80),
      "job fashion: training, step 1234 of 1500, 41.2 s\n"
      "loss 0.3123, 12346 examples/s, test accuracy 0.8912 at step 1000\n"
      "last checkpoint: step 1000\n"
      "\n"
      "task      state    heard  doing              since  passes  accepted  "
      "stale\n"
      "ps 0      alive    0.2 s\n"
      "worker 0  alive    0.3 s  waits for a token  1.0 s     415       412  "
      "    3\n"
      "worker 1  missing      -\n"
      "\n"
      "waits:\n"
      "  step 1235 on ps 0 waits for 1 more gradient; worker 1 (5.0 s)\n");
}

TEST(StatusReportTest, FitsTheWidthWhateverTheChiefSays) {
  JobStatus status = Sample();
  status.reason = "first word " + std::string(40, 'x') + " and many more words";
  WorkerCounts& counts = *status.members[1].counts;
  counts.activity = std::string(200, 'y');
  counts.passes = std::numeric_limits<int64_t>::max();
  counts.accepted = std::numeric_limits<int64_t>::min();
  status.waits[0].waits_for =
      "a b c d e f g h i j k l m n o p q r s t u v w x "
      "y z a b c d e f g h i j k l m n o p q r s t u";

  EXPECT_THAT(Lines(FormatStatusReport(status, 80)),
              Each(SizeIs(testing::Le(80u))));
}

TEST(StatusReportTest, WhatAWorkerDoesGivesWayToItsName) {
  JobStatus status = Sample();
  status.members[1].counts->activity = "waits for a token after step 1234";

  EXPECT_THAT(FormatStatusReport(status, 80),
              HasSubstr("worker 0  alive    0.3 s  waits for a token aft~"));
}

TEST(StatusReportTest, EvaluatorSaysWhatItDoesAndHasNoPasses) {
  JobStatus status = Sample();
  status.members = {{.task = "evaluator 0",
                     .state = MemberState::kAlive,
                     .since_heartbeat = absl::Milliseconds(200),
                     .counts = WorkerCounts{.activity = "scores step 9, 40 %",
                                            .activity_age = absl::Seconds(8)}}};

  EXPECT_THAT(
      Lines(FormatStatusReport(status, 100)),
      Contains("evaluator 0  alive  0.2 s  scores step 9, 40 %  8.0 s"));
}

TEST(StatusReportTest, NothingFromTheWireReachesTheTerminalRaw) {
  JobStatus status = Sample();
  status.job_name = "\x1b[2J";
  status.members[0].task = "\x1b[2J";
  status.waits[0].owner = "\x1b[2J";

  EXPECT_THAT(FormatStatusReport(status, 80), Not(HasSubstr("\x1b")));
}

TEST(StatusReportTest, SaysWhatThereIsNotYet) {
  const std::string report = FormatStatusReport(JobStatus(), 80);

  EXPECT_THAT(report, HasSubstr("no checkpoint yet\n"));
  EXPECT_THAT(report, HasSubstr("no waits\n"));
  EXPECT_THAT(report, HasSubstr("no step yet\n"));
  EXPECT_THAT(report, Not(HasSubstr("loss")));
}

TEST(LossesTest, AreShownAfterADeath) {
  JobStatus status = Sample();
  EXPECT_EQ(FormatLosses(status), "");
  EXPECT_THAT(FormatStatusReport(status, 80), Not(HasSubstr("interruptions")));

  status.losses = {.recoveries = 1,
                   .steps_redone = 2,
                   .steps_repeated = 30,
                   .stood_still = absl::Milliseconds(1340)};

  EXPECT_EQ(FormatLosses(status),
            "interruptions cost: 2 steps redone, 30 committed steps repeated, "
            "1.3 s without a server (1 time)");
  EXPECT_THAT(FormatStatusReport(status, 200), HasSubstr(FormatLosses(status)));
}

TEST(DeathsTest, EachIsToldWithWhatItCost) {
  JobStatus status = Sample();
  EXPECT_EQ(FormatDeaths(status, 200), "");
  status.deaths = {{.task = "worker 1",
                    .reason = "silent for 2 s",
                    .held = "an announcement",
                    .redone = "step 13",
                    .since = absl::Seconds(95),
                    .stood_still = absl::Milliseconds(2140)},
                   {.task = "ps 0",
                    .reason = "replaced",
                    .held = "its share of step 20",
                    .since = absl::Seconds(1)}};

  EXPECT_EQ(FormatDeaths(status, 200),
            "interruptions:\n"
            "  worker 1, 95 s ago (silent for 2 s): held an announcement; "
            "redone: step 13; the job stood still for 2.1 s\n"
            "  ps 0, 1.0 s ago (replaced): held its share of step 20; redone: "
            "nothing; the job stands still\n");
  status.settings.paused = true;
  EXPECT_THAT(FormatDeaths(status, 200),
              HasSubstr("redone: nothing; the job is paused\n"));
  EXPECT_THAT(FormatStatusReport(status, 200),
              HasSubstr(FormatDeaths(status, 200)));
}

TEST(StatusReportTest, SaysWhyTheNewestCheckpointFailed) {
  JobStatus status = Sample();
  status.checkpoint_trouble = "step 1200: no space";

  EXPECT_THAT(FormatStatusReport(status, 200),
              HasSubstr("last checkpoint: step 1000; the newest attempt failed:"
                        " step 1200: no space"));
}

}  // namespace
}  // namespace lockstep::cli
