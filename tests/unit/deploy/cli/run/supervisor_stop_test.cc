// How a signal of the launcher, or its giving up, ends a run.

#include <signal.h>

#include "deploy/cli/run/supervisor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/deploy/cli/run/supervisor_fixture.h"

namespace lockstep::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class SupervisorStopTest : public SupervisorTest {};

TEST_F(SupervisorStopTest, ASignalThatComesTwiceAtOnceIsOne) {
  supervisor_.OnSignal(SIGTERM, At(0));

  EXPECT_THAT(supervisor_.OnSignal(SIGTERM, At(0.4)), IsEmpty());
  EXPECT_EQ(supervisor_.OnSignal(SIGTERM, At(0.5)).size(), 5u);
}

TEST_F(SupervisorStopTest, ASignalAsksTheChiefFirst) {
  EXPECT_THAT(supervisor_.OnSignal(SIGINT, At(0)),
              ElementsAre(AskToStop("the launcher was stopped")));
  EXPECT_THAT(supervisor_.OnTime(At(19)), IsEmpty());
  ExitRest(kStoppedCode, At(19));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kInterrupted);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 130);
  EXPECT_THAT(supervisor_.Outcome().bad_ends, IsEmpty());
}

TEST_F(SupervisorStopTest, SigtermExitsWithItsOwnCode) {
  supervisor_.OnSignal(SIGTERM, At(0));
  ExitRest(kStoppedCode, At(1));

  EXPECT_EQ(supervisor_.Outcome().exit_code, 143);
}

TEST_F(SupervisorStopTest, AChiefThatDoesNotAnswerIsTerminated) {
  supervisor_.OnSignal(SIGINT, At(0));

  EXPECT_THAT(supervisor_.OnStopRefused(),
              ElementsAre(Signal(kChief, SIGTERM)));
}

TEST_F(SupervisorStopTest, TaskThatIgnoresAStopIsTerminatedThenKilled) {
  supervisor_.OnSignal(SIGINT, At(0));

  EXPECT_EQ(supervisor_.OnTime(At(20)).size(), 5u);
  EXPECT_THAT(supervisor_.OnTime(At(35)).front().signal, SIGKILL);
  ExitRest(kKilled, At(31));

  EXPECT_EQ(supervisor_.Outcome().bad_ends.size(), 5u);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 130);
}

TEST_F(SupervisorStopTest, AChiefThatWritesTheLastCheckpointHasTheTimeForIt) {
  supervisor_.OnSignal(SIGINT, At(0));
  for (int second = 1; second <= 100; ++second) {
    supervisor_.OnJobState(JobState::kFinishing, At(second));
    EXPECT_THAT(supervisor_.OnTime(At(second)), IsEmpty()) << second;
  }

  EXPECT_THAT(supervisor_.OnTime(At(119.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(120)).size(), 5u);  // it no longer answers
}

// It was still in its last step when the first grace was over.
TEST_F(SupervisorStopTest, ACheckpointThatBeginsLateHasItsTimeToo) {
  supervisor_.OnSignal(SIGINT, At(0));
  supervisor_.OnJobState(JobState::kTraining, At(19));
  EXPECT_EQ(supervisor_.OnTime(At(20)).size(), 5u);
  supervisor_.OnJobState(JobState::kFinishing, At(34));

  EXPECT_THAT(supervisor_.OnTime(At(48.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(49)).size(), 5u);
  ExitRest(kKilled, At(49));
  EXPECT_TRUE(supervisor_.Outcome().chief_killed);
}

TEST_F(SupervisorStopTest, ASecondSignalEndsTheLastCheckpointToo) {
  supervisor_.OnSignal(SIGINT, At(0));
  supervisor_.OnJobState(JobState::kFinishing, At(1));

  EXPECT_EQ(supervisor_.OnSignal(SIGINT, At(2)).size(), 5u);
  ExitRest(kKilled, At(2));
  EXPECT_TRUE(supervisor_.Outcome().chief_killed);
}

TEST_F(SupervisorStopTest, AChiefThatAnotherProcessKillsWritesNoCheckpoint) {
  supervisor_.OnSignal(SIGINT, At(0));
  supervisor_.OnJobState(JobState::kFinishing, At(1));
  supervisor_.OnTaskExit(kChief, kKilled, At(2));
  ExitRest(kStoppedCode, At(3));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kInterrupted);
  EXPECT_TRUE(supervisor_.Outcome().chief_killed);
}

TEST_F(SupervisorStopTest, AChiefThatASignalFindsDeadWritesNoCheckpoint) {
  cli::Supervisor supervisor(
      {.tasks = {kPs, kChief}, .chief = kChief, .restarts = 2});
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnTaskExit(kChief, kKilled, At(1));
  ASSERT_THAT(supervisor.OnTime(At(2)), ElementsAre(Start(kChief)));
  supervisor.OnTaskExit(kChief, kKilled, At(3));

  EXPECT_THAT(supervisor.OnSignal(SIGINT, At(3.1)),
              ElementsAre(Signal(kPs, SIGTERM)));
  supervisor.OnTaskExit(kPs, kStoppedCode, At(4));

  EXPECT_TRUE(supervisor.finished());
  EXPECT_TRUE(supervisor.Outcome().chief_killed);
}

TEST_F(SupervisorStopTest, AChiefThatRanAgainMayHaveWrittenTheCheckpoint) {
  cli::Supervisor supervisor(
      {.tasks = {kChief}, .chief = kChief, .restarts = 1});
  supervisor.OnTaskExit(kChief, kKilled, At(1));
  ASSERT_THAT(supervisor.OnTime(At(2)), ElementsAre(Start(kChief)));
  supervisor.OnSignal(SIGINT, At(3));
  supervisor.OnTaskExit(kChief, kStoppedCode, At(4));

  EXPECT_FALSE(supervisor.Outcome().chief_killed);
}

TEST_F(SupervisorStopTest, AChiefThatIsGoneGetsNoTimeForACheckpoint) {
  supervisor_.OnSignal(SIGINT, At(0));
  supervisor_.OnTaskExit(kChief, kStoppedCode, At(1));
  supervisor_.OnJobState(JobState::kFinishing, At(2));

  EXPECT_EQ(supervisor_.OnTime(At(6)).size(), 4u);
  ExitRest(kKilled, At(6));
  EXPECT_FALSE(supervisor_.Outcome().chief_killed);
}

TEST_F(SupervisorStopTest, OrphansOfAStoppedChiefAreNotWaitedForLong) {
  supervisor_.OnSignal(SIGINT, At(0));
  supervisor_.OnTaskExit(kChief, kStoppedCode, At(1));

  EXPECT_THAT(supervisor_.OnTime(At(5.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(6)).size(), 4u);
}

TEST_F(SupervisorStopTest, ASecondSignalKillsAllAtOnce) {
  supervisor_.OnSignal(SIGINT, At(0));
  supervisor_.OnTaskExit(kChief, kStoppedCode, At(0));

  EXPECT_THAT(supervisor_.OnSignal(SIGINT, At(1)),
              UnorderedElementsAre(
                  Signal(kPs, SIGKILL), Signal(kWorker0, SIGKILL),
                  Signal(kWorker1, SIGKILL), Signal(kEvaluator, SIGKILL)));
  ExitRest(kKilled, At(1));

  EXPECT_EQ(supervisor_.Outcome().exit_code, 130);
  EXPECT_THAT(supervisor_.Outcome().bad_ends, IsEmpty());
}

TEST_F(SupervisorStopTest, ASignalAfterTheEndOfTheJobDoesNotChangeItsResult) {
  supervisor_.OnJobState(JobState::kDone, At(0));

  EXPECT_THAT(supervisor_.OnSignal(SIGINT, At(1)),
              ElementsAre(Note("the job has ended; waiting for the tasks to "
                               "leave; Ctrl-C ends them at once")));
  EXPECT_TRUE(supervisor_.signalled());
  ExitRest(kOk, At(2));
  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 0);
}

TEST_F(SupervisorStopTest, AJobThatIsDoneDespiteASignalIsDone) {
  supervisor_.OnJobState(JobState::kFinishing, At(0));

  supervisor_.OnSignal(SIGINT, At(1));
  ExitRest(kOk, At(2));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 0);
}

TEST_F(SupervisorStopTest, ASignalAfterAFailureDoesNotHideIt) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kPs, kKilled, At(0));

  supervisor_.OnSignal(SIGINT, At(1));
  ExitRest(kStoppedCode, At(2));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kFailed);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
  EXPECT_THAT(supervisor_.Outcome().bad_ends,
              Contains(cli::BadEnd{kPs, kKilled}));
}

TEST_F(SupervisorStopTest, ASignalDoesNotLengthenTheTimeToLeave) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(0));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(0));

  supervisor_.OnSignal(SIGINT, At(1));
  EXPECT_THAT(supervisor_.OnTime(At(4.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(5)).size(), 3u);
}

TEST_F(SupervisorStopTest, ASignalWithoutAChiefTerminatesTheRest) {
  supervisor_.OnTaskExit(kChief, kFailedCode, At(0));

  EXPECT_EQ(supervisor_.OnSignal(SIGINT, At(1)).size(), 4u);
}

TEST_F(SupervisorStopTest, AChiefOfARunThatIsGivenUpHasTimeForItsCheckpoint) {
  cli::Supervisor supervisor({.tasks = {kPs, kChief, kWorker0},
                              .chief = kChief,
                              .needed_workers = 1,
                              .restarts = 1});
  supervisor.OnStartFailed(kWorker0, "why", At(0));
  supervisor.OnJobState(JobState::kFinishing, At(19));

  EXPECT_THAT(supervisor.OnTime(At(38.9)), IsEmpty());
  EXPECT_EQ(supervisor.OnTime(At(39)).size(), 2u);
}

}  // namespace
}  // namespace lockstep::testing
