#include "deploy/cli/run/run_report.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Verdict = RunOutcome::Verdict;

constexpr TaskId kPs = {TaskType::kPs, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

std::map<TaskId, LogTail> Logs() {
  return {{kPs, {"/logs/ps-0.log", {"first", "second"}}},
          {kWorker1, {"/logs/worker-1.log", {}}}};
}

JobStatus Last(JobState state) {
  return {.state = state,
          .step = 700,
          .train_steps = 1500,
          .training_time = absl::Milliseconds(30'100),
          .members = {{.task = "worker 0",
                       .counts = WorkerCounts{.passes = 5, .accepted = 4}}}};
}

TEST(RunReportTest, ADoneRunEndsWithItsFigures) {
  EXPECT_EQ(FormatRunReport({.verdict = Verdict::kDone, .exit_code = 0},
                            Last(JobState::kDone), Logs(), {}, 80),
            "worker  passes  accepted  stale  waited\n"
            "0            5         4      0   0.0 s\n"
            "done: step 700 of 1500, since the input has ended, "
            "30.1 s\n");
}

TEST(RunReportTest, ALostWorkerOfADoneRunIsAWarning) {
  const RunOutcome outcome = {.verdict = Verdict::kDone,
                              .exit_code = 0,
                              .bad_ends = {{kWorker1, {.signal = SIGKILL}}}};
  JobStatus status = Last(JobState::kDone);
  status.members.clear();

  EXPECT_EQ(FormatRunReport(outcome, status, Logs(), {}, 80),
            "warning: the job went on without a task: worker 1 was ended by "
            "signal 9 (Killed); see /logs/worker-1.log\n"
            "done: step 700 of 1500, since the input has ended, "
            "30.1 s\n");
}

TEST(RunReportTest, AWarningHasTheReasonOfATaskThatEndedByItself) {
  std::map<TaskId, LogTail> logs = Logs();
  logs[kWorker1].reason = "ValueError: no model";

  EXPECT_THAT(FormatRunReport({.verdict = Verdict::kDone,
                               .exit_code = 0,
                               .bad_ends = {{kWorker1, {.code = 1}}}},
                              std::nullopt, logs, {}, 80),
              StartsWith("warning: the job went on without a task: worker 1 "
                         "ended with exit code 1: ValueError: no model; see "
                         "/logs/worker-1.log\n"));
}

TEST(RunReportTest, TheLastLineOfADoneRunThatExitsWithOneSaysWhy) {
  std::map<TaskId, LogTail> logs = Logs();
  logs[kWorker1].reason = "ValueError: no model";
  RunOutcome outcome = {.verdict = Verdict::kDone,
                        .exit_code = 1,
                        .bad_ends = {{kWorker1, {.code = 1}}}};

  EXPECT_EQ(FormatLastLine(outcome, Last(JobState::kDone), logs, {}),
            "done: step 700 of 1500, since the input has ended, 30.1 s; but "
            "worker 1 ended with exit code 1: ValueError: no model");
  outcome.bad_ends = {{kWorker1, {.signal = SIGTERM}, /*forced=*/true}};
  EXPECT_EQ(FormatLastLine(outcome, Last(JobState::kDone), logs, {}),
            "done: step 700 of 1500, since the input has ended, 30.1 s; but "
            "worker 1 was ended by signal 15 (Terminated) after it was asked "
            "to leave");
}

TEST(RunReportTest, AnEvaluatorWithoutAScoreIsAWarning) {
  constexpr TaskId kEvaluator = {TaskType::kEvaluator, 0};
  std::map<TaskId, LogTail> logs = Logs();
  logs[kEvaluator].path = "/logs/evaluator-0.log";
  RunOutcome outcome = {.verdict = Verdict::kDone, .exit_code = 0};
  JobStatus status = Last(JobState::kDone);
  const auto report = [&] {
    return FormatRunReport(outcome, status, logs, {}, 80);
  };
  constexpr char kWarning[] =
      "warning: evaluator 0 has reported no score; see /logs/evaluator-0.log";

  EXPECT_THAT(report(), Not(HasSubstr(kWarning)));  // nothing to score
  status.last_checkpoint_step = 700;
  EXPECT_THAT(report(), HasSubstr(kWarning));
  outcome.bad_ends = {{kEvaluator, {.code = 127}}};
  EXPECT_THAT(report(), Not(HasSubstr(kWarning)));
  outcome.bad_ends.clear();
  status.evaluation = Evaluation{.step = 700};
  EXPECT_THAT(report(), Not(HasSubstr("warning")));
  status.last_checkpoint_step = 900;
  EXPECT_THAT(report(),
              HasSubstr("warning: evaluator 0 has not scored the last "
                        "checkpoint, of step 900; its last score is of step "
                        "700; see /logs/evaluator-0.log"));
}

TEST(RunReportTest, AFailureShowsTheCauseAndItsLog) {
  const RunOutcome outcome = {
      .bad_ends = {{kPs, {.signal = SIGSEGV}},
                   {kWorker1, {.code = 1}, /*forced=*/true}}};

  EXPECT_EQ(FormatRunReport(outcome, std::nullopt, Logs(), {}, 80),
            "ps 0 was ended by signal 11 (Segmentation fault); the end of "
            "/logs/ps-0.log:\n"
            "  | first\n"
            "  | second\n"
            "then worker 1 ended with exit code 1 after it was asked to leave; "
            "see /logs/worker-1.log\n"
            "failed: before the chief answered; ps 0 was ended by signal 11 "
            "(Segmentation fault)\n");
}

// A server ends sooner than a program that has to put its stack on the log.
TEST(RunReportTest, LogShownIsThatOfTheTaskThatFailedTheJob) {
  JobStatus status = Last(JobState::kFailed);
  status.members.clear();
  status.reason =
      "worker 1 left: failed: ValueError: no data; 1 of 2 workers are left";
  const RunOutcome outcome = {
      .bad_ends = {{kPs, {.code = 1}}, {kWorker1, {.code = 1}}}};
  std::map<TaskId, LogTail> logs = {
      {kPs, {"/logs/ps-0.log", {"heard"}, status.reason}},
      {kWorker1, {"/logs/worker-1.log", {"raised"}, "ValueError: no data"}}};

  const std::string first =
      "worker 1 ended with exit code 1; the end of /logs/worker-1.log:\n"
      "  | raised\n"
      "then ps 0 ended with exit code 1; see /logs/ps-0.log\n";
  EXPECT_THAT(FormatRunReport(outcome, status, logs, {}, 80),
              StartsWith(first));

  // All have only heard of it: the first one is as good as any.
  logs[kWorker1].reason = "JobFailed: " + status.reason;
  EXPECT_THAT(FormatRunReport(outcome, status, logs, {}, 80),
              StartsWith("ps 0 ended with exit code 1; the end of"));
}

TEST(RunReportTest, ProgramThatQuitIsAWarning) {
  const RunOutcome outcome = {
      .verdict = Verdict::kDone,
      .exit_code = 0,
      .bad_ends = {{.task = kWorker1, .exit = {}, .quit = true}}};

  EXPECT_THAT(FormatRunReport(outcome, std::nullopt, Logs(), {}, 80),
              StartsWith("warning: the job went on without a task: worker 1 "
                         "ended with exit code 0 before the job was done; see "
                         "/logs/worker-1.log\n"));
}

TEST(RunReportTest, AnEmptyLogIsSaidToBeEmpty) {
  const RunOutcome outcome = {.reason = "why",
                              .bad_ends = {{kWorker1, {.code = 1}}}};

  EXPECT_EQ(FormatRunReport(outcome, std::nullopt, Logs(), {}, 80),
            "worker 1 ended with exit code 1; its log is empty: "
            "/logs/worker-1.log\n"
            "failed: before the chief answered; why\n");
}

TEST(RunReportTest, TheChiefsReasonIsTheBestOne) {
  JobStatus status = Last(JobState::kFailed);
  status.members.clear();
  status.reason = "ps 0\x1b is lost";

  EXPECT_EQ(FormatRunReport({.reason = "other"}, status, Logs(), {}, 80),
            "failed: step 700 of 1500, 30.1 s; ps 0? is lost\n");
}

TEST(RunReportTest, AChiefThatWasStoppedForWantOfWorkersIsNotTheCause) {
  const RunOutcome outcome = {.reason = "a step needs 1 worker; left: 0",
                              .bad_ends = {{kWorker1, {.code = 1}}}};
  JobStatus status = Last(JobState::kStopped);
  status.members.clear();
  status.reason = "ps 1: SIGTERM";
  const std::map<TaskId, LogTail> logs = {
      {kWorker1, {"/logs/worker-1.log", {"..."}, "the gradient is NaN"}}};

  EXPECT_EQ(FormatRunReport(outcome, status, logs, {}, 80),
            "worker 1 ended with exit code 1; the end of /logs/worker-1.log:\n"
            "  | ...\n"
            "failed: step 700 of 1500, 30.1 s; worker 1: the gradient is "
            "NaN\n");
}

TEST(RunReportTest, StopsSayHowFarTheJobCame) {
  JobStatus status = Last(JobState::kStopped);
  status.members.clear();
  status.reason = "lunch";

  EXPECT_EQ(FormatRunReport({.verdict = Verdict::kStopped}, status, {},
                            {.state = "/data/state"}, 80),
            "stopped: step 700 of 1500, 30.1 s; lunch\n");
  EXPECT_EQ(FormatRunReport({.verdict = Verdict::kInterrupted}, status, {},
                            {.state = "/data/state"}, 80),
            "interrupted: step 700 of 1500, 30.1 s\n");
}

TEST(RunReportTest, AnEarlyEndThatKeepsNothingSaysSo) {
  JobStatus status = Last(JobState::kStopped);
  const std::string nothing =
      "step 700 of 1500, 30.1 s; nothing of it is kept: set "
      "checkpoint.directory";
  EXPECT_EQ(FormatLastLine({.verdict = Verdict::kStopped}, status, {}, {}),
            "stopped: " + nothing);
  EXPECT_EQ(FormatLastLine({.verdict = Verdict::kInterrupted}, status, {}, {}),
            "interrupted: " + nothing);

  // There is nothing to keep yet.
  status.step = 0;
  EXPECT_THAT(
      FormatLastLine({.verdict = Verdict::kInterrupted}, status, {}, {}),
      Not(HasSubstr("kept")));
}

TEST(RunReportTest, SaysWhereTheModelIsAndHowToGoOn) {
  JobStatus status = Last(JobState::kDone);
  status.members.clear();
  status.step = status.train_steps = status.last_checkpoint_step = 1500;
  status.checkpoint_directory = "/my data/c";
  const RunPlace place = {.checkpoints = "/my data/c",
                          .program = "/b/lockstep"};

  EXPECT_EQ(FormatRunReport({.verdict = Verdict::kDone, .exit_code = 0}, status,
                            {}, place, 80),
            "model: step 1500; one file of it: /b/lockstep export "
            "--checkpoints '/my data/c' --out model.safetensors\n"
            "done: step 1500, 30.1 s\n");

  status.state = JobState::kFailed;
  EXPECT_EQ(
      FormatRunReport({.reason = "why"}, status, {}, place, 80),
      "last checkpoint: step 1500 in /my data/c; once the cause is removed, "
      "the same command goes on from it\n"
      "failed: step 1500 of 1500, 30.1 s; why\n");
}

// With these flags the same command would set the checkpoint aside.
TEST(RunReportTest, WhatGoesOnAfterFreshOrFromIsTheCommandWithoutThem) {
  JobStatus status = Last(JobState::kFailed);
  status.last_checkpoint_step = 600;
  RunPlace place = {.checkpoints = "c",
                    .beginning = {.step = Beginning::kFresh}};
  const auto report = [&] {
    return FormatRunReport({.verdict = Verdict::kInterrupted}, status, {},
                           place, 80);
  };

  EXPECT_THAT(report(), HasSubstr("step 600 in c; the same command without "
                                  "--fresh goes on from it\n"));
  place.beginning.step = 0;
  EXPECT_THAT(report(), HasSubstr("step 600 in c; the same command without "
                                  "--from goes on from it\n"));
}

// `lockstep status` later shows this line as the result of the run.
TEST(RunReportTest, TheLastLineByItselfSaysWhereTheModelIs) {
  JobStatus status = Last(JobState::kDone);
  status.step = status.train_steps = status.last_checkpoint_step = 1500;
  status.checkpoint_directory = "c";  // as the job file has it
  const RunPlace place = {.checkpoints = "/data/c"};

  EXPECT_EQ(FormatLastLine({.verdict = Verdict::kDone}, status, {}, place),
            "done: step 1500, 30.1 s; checkpoint in /data/c");
  EXPECT_EQ(FormatLastLine({.verdict = Verdict::kDone}, status, {}, {}),
            "done: step 1500, 30.1 s");
  status.state = JobState::kStopped;
  status.step = 1450;
  status.last_checkpoint_step = 1400;
  EXPECT_EQ(FormatLastLine({.verdict = Verdict::kStopped}, status, {}, place),
            "stopped: step 1450 of 1500, 30.1 s; checkpoint of step 1400 in "
            "/data/c");
  status.last_checkpoint_step = -1;
  EXPECT_EQ(FormatLastLine({.verdict = Verdict::kStopped}, status, {}, place),
            "stopped: step 1450 of 1500, 30.1 s");
}

TEST(RunReportTest, ACheckpointThatAKilledChiefDidNotWriteIsMissed) {
  JobStatus status = Last(JobState::kFinishing);
  status.last_checkpoint_step = 500;
  RunPlace place = {.checkpoints = "/data/c"};
  const RunOutcome killed = {.verdict = Verdict::kInterrupted,
                             .chief_killed = true};

  EXPECT_EQ(FormatLastLine(killed, status, {}, place),
            "interrupted: step 700 of 1500, 30.1 s; no checkpoint of step 700: "
            "the chief was killed before it was written; the servers' state is "
            "gone; checkpoint of step 500 in /data/c");
  place.state = "/data/state";
  EXPECT_THAT(FormatRunReport(killed, status, {}, place, 80),
              HasSubstr("; the servers' state stays in /data/state\n"));
  status.last_checkpoint_step = 700;
  EXPECT_EQ(FormatLastLine(killed, status, {}, place),
            "interrupted: step 700 of 1500, 30.1 s; checkpoint in /data/c");
}

TEST(RunReportTest, ACheckpointThatAStoppedChiefCouldNotWriteIsMissed) {
  JobStatus status = Last(JobState::kFinishing);
  status.last_checkpoint_step = 500;
  RunOutcome outcome = {.verdict = Verdict::kInterrupted,
                        .bad_ends = {{{TaskType::kChief, 0}, {.code = 1}}}};
  const RunPlace place = {.checkpoints = "/data/c", .state = "/data/state"};

  EXPECT_EQ(FormatLastLine(outcome, status, {}, place),
            "interrupted: step 700 of 1500, 30.1 s; no checkpoint of step 700: "
            "it could not be written; the servers' state stays in /data/state; "
            "checkpoint of step 500 in /data/c");
  // The reason of a failure may be another.
  outcome.verdict = Verdict::kFailed;
  EXPECT_THAT(FormatLastLine(outcome, status, {}, place),
              Not(HasSubstr("no checkpoint")));
}

TEST(RunReportTest, RestartsAreCountedByTask) {
  const RunOutcome outcome = {.verdict = Verdict::kDone,
                              .exit_code = 0,
                              .restarts = {{kPs, 1}, {kWorker1, 2}}};
  JobStatus status = Last(JobState::kDone);
  status.members.clear();

  EXPECT_EQ(FormatRunReport(outcome, status, Logs(), {}, 80),
            "started again: worker 1 (2 times), ps 0; the table counts a "
            "worker's passes from its last start\n"
            "done: step 700 of 1500, since the input has ended, "
            "30.1 s\n");
}

TEST(RunReportTest, ARunThatWasGivenUpSaysWhyWhateverTheChiefSays) {
  const RunOutcome outcome = {.reason = "worker 1 died 4 times",
                              .gave_up = true};
  JobStatus status = Last(JobState::kStopped);
  status.members.clear();
  status.reason = "stopped";

  EXPECT_EQ(FormatRunReport(outcome, status, Logs(), {}, 80),
            "failed: step 700 of 1500, 30.1 s; worker 1 died 4 times\n");
}

}  // namespace
}  // namespace lockstep::cli
