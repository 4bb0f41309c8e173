#include <signal.h>

#include "deploy/cli/run/supervisor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/deploy/cli/run/supervisor_fixture.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using SupervisorOutcomeTest = SupervisorTest;

TEST_F(SupervisorOutcomeTest, AFailedJobIsAFailureThoughAllAnswerWithCodes) {
  supervisor_.OnJobState(JobState::kFailed, At(0));
  ExitRest(kFailedCode, At(1));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kFailed);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

TEST_F(SupervisorOutcomeTest, ADoneJobWithAWorkerThatHungIsDoneAndSaysSo) {
  supervisor_.OnJobState(JobState::kDone, At(0));
  for (const TaskId task : {kPs, kChief, kWorker0}) {
    supervisor_.OnTaskExit(task, kOk, At(1));
  }

  EXPECT_THAT(
      supervisor_.OnTime(At(30)),
      ElementsAre(Signal(kWorker1, SIGTERM), Signal(kEvaluator, SIGTERM)));
  supervisor_.OnTaskExit(kWorker1, kStoppedCode, At(31));
  supervisor_.OnTaskExit(kEvaluator, kStoppedCode, At(31));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 0);
  EXPECT_THAT(
      supervisor_.Outcome().bad_ends,
      ElementsAre(cli::BadEnd{kWorker1, kStoppedCode, /*forced=*/true},
                  cli::BadEnd{kEvaluator, kStoppedCode, /*forced=*/true}));
}

TEST_F(SupervisorOutcomeTest, ADoneJobWithAServerThatHadToBeForcedExitsOne) {
  supervisor_.OnJobState(JobState::kDone, At(0));
  for (const TaskId task : {kChief, kWorker0, kWorker1, kEvaluator}) {
    supervisor_.OnTaskExit(task, kOk, At(1));
  }
  supervisor_.OnTime(At(30));
  supervisor_.OnTaskExit(kPs, kStoppedCode, At(31));

  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

TEST_F(SupervisorOutcomeTest, ADoneJobWhoseServerCrashedExitsOne) {
  supervisor_.OnJobState(JobState::kDone, At(0));
  supervisor_.OnTaskExit(kPs, kKilled, At(1));
  ExitRest(kOk, At(1));

  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

TEST_F(SupervisorOutcomeTest, AJobStoppedByAnOperatorExitsAsItsTasksDo) {
  supervisor_.OnTaskExit(kWorker0, kStoppedCode, At(0));
  supervisor_.OnJobState(JobState::kStopped, At(0));
  ExitRest(kStoppedCode, At(1));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kStopped);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 143);
  EXPECT_THAT(supervisor_.Outcome().bad_ends, IsEmpty());
}

TEST_F(SupervisorOutcomeTest, AJobThatAnOperatorStoppedForGoodExitsWithThree) {
  supervisor_.OnJobState(JobState::kStopped, At(0));
  ExitRest({.code = 3}, At(1));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kStopped);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 3);
  EXPECT_THAT(supervisor_.Outcome().bad_ends, IsEmpty());
}

// The launcher stopped the chief, which could not know that its workers would
// never come back.
TEST_F(SupervisorOutcomeTest, AStopForWantOfWorkersIsAFailure) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(0));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(0));
  supervisor_.OnTime(At(5));
  supervisor_.OnJobState(JobState::kStopped, At(6));
  ExitRest(kStoppedCode, At(6));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kFailed);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

TEST_F(SupervisorOutcomeTest, ATaskThatRefusesItsInputGivesTheRunItsCode) {
  supervisor_.OnJobState(JobState::kStarting, At(0));
  supervisor_.OnTaskExit(kPs, {.code = 2}, At(0));
  EXPECT_THAT(supervisor_.OnTime(At(4.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(5)).size(), 4u);
  supervisor_.OnJobState(JobState::kStopped, At(6));
  ExitRest(kStoppedCode, At(6));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kFailed);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 2);
}

}  // namespace
}  // namespace lockstep::testing
