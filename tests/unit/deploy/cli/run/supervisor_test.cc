#include "deploy/cli/run/supervisor.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/deploy/cli/run/supervisor_fixture.h"

namespace lockstep::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(SupervisorTest, AHealthyRunNeedsNothing) {
  EXPECT_THAT(supervisor_.OnJobState(JobState::kTraining, At(1)), IsEmpty());
  EXPECT_THAT(supervisor_.OnTime(At(1e9)), IsEmpty());
  EXPECT_TRUE(supervisor_.healthy());
  EXPECT_FALSE(supervisor_.finished());
}

TEST_F(SupervisorTest, AllThatEndWithZeroMakeARunThatIsDone) {
  supervisor_.OnJobState(JobState::kDone, At(1));
  ExitRest(kOk, At(2));

  EXPECT_TRUE(supervisor_.finished());
  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 0);
  EXPECT_THAT(supervisor_.Outcome().bad_ends, IsEmpty());
}

TEST_F(SupervisorTest, TheChiefsExitCodeStandsInForAMissedAnswer) {
  ExitRest(kOk, At(2));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
}

TEST_F(SupervisorTest, ABackupWorkerThatDiesEndsNothing) {
  supervisor_.OnJobState(JobState::kTraining, At(1));

  EXPECT_THAT(supervisor_.OnTaskExit(kWorker1, kKilled, At(2)), IsEmpty());
  EXPECT_TRUE(supervisor_.healthy());
  EXPECT_THAT(supervisor_.OnTime(At(1000)), IsEmpty());

  supervisor_.OnJobState(JobState::kDone, At(1001));
  ExitRest(kOk, At(1002));
  EXPECT_EQ(supervisor_.Outcome().exit_code, 0);
  EXPECT_THAT(supervisor_.Outcome().bad_ends,
              ElementsAre(cli::BadEnd{kWorker1, kKilled}));
}

// Without restarts no other chief comes, and this one has told no task.
TEST_F(SupervisorTest, AChiefThatIsKilledIsNotWaitedForLong) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kChief, kKilled, At(1));

  EXPECT_THAT(supervisor_.OnTime(At(5.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(6)).size(), 4u);
}

TEST_F(SupervisorTest, AnEvaluatorThatDiesEndsNothing) {
  supervisor_.OnTaskExit(kEvaluator, kFailedCode, At(2));

  EXPECT_TRUE(supervisor_.healthy());
}

TEST_F(SupervisorTest, TooFewWorkersBeforeTheFirstStepEndTheRunAtOnce) {
  supervisor_.OnJobState(JobState::kStarting, At(0));
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(0));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(0));

  EXPECT_THAT(supervisor_.OnTime(At(0.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(1)).size(), 3u);
}

// The evaluator ended first.
TEST_F(SupervisorTest, EvaluatorIsNoCauseOfAFailure) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kEvaluator, {.code = 2}, At(0));
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(1));
  ExitRest(kFailedCode, At(2));

  const cli::RunOutcome outcome = supervisor_.Outcome();
  EXPECT_EQ(outcome.bad_ends.front(), (cli::BadEnd{kWorker0, kFailedCode}));
  EXPECT_EQ(outcome.bad_ends.back().task, kEvaluator);
  EXPECT_EQ(outcome.exit_code, 1);
}

TEST_F(SupervisorTest, TooFewWorkersEndTheRunUnlessTheChiefSpeaks) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(0));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(0));

  EXPECT_FALSE(supervisor_.healthy());
  EXPECT_THAT(supervisor_.OnTime(At(4.9)), IsEmpty());
  EXPECT_THAT(
      supervisor_.OnTime(At(5)),
      UnorderedElementsAre(Signal(kPs, SIGTERM), Signal(kChief, SIGTERM),
                           Signal(kEvaluator, SIGTERM)));
  ExitRest(kStoppedCode, At(6));

  const cli::RunOutcome outcome = supervisor_.Outcome();
  EXPECT_EQ(outcome.verdict, Verdict::kFailed);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.reason,
            "worker 1 ended with exit code 1; a step needs 1 worker; left: 0");
  EXPECT_THAT(outcome.bad_ends,
              ElementsAre(cli::BadEnd{kWorker0, kFailedCode},
                          cli::BadEnd{kWorker1, kFailedCode}));
}

TEST_F(SupervisorTest, WorkersThatAreDoneAreNotMissed) {
  supervisor_.OnTaskExit(kWorker0, kOk, At(0));
  supervisor_.OnTaskExit(kWorker1, kStoppedCode, At(0));

  EXPECT_TRUE(supervisor_.healthy());
}

TEST_F(SupervisorTest, WorkersAreNotNeededAfterTheLastStep) {
  supervisor_.OnJobState(JobState::kFinishing, At(0));
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(1));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(1));

  EXPECT_TRUE(supervisor_.healthy());
}

TEST_F(SupervisorTest, AfterAServersDeathTheOthersHaveThirtySeconds) {
  supervisor_.OnTaskExit(kPs, kKilled, At(0));

  EXPECT_FALSE(supervisor_.healthy());
  EXPECT_THAT(supervisor_.OnTime(At(29)), IsEmpty());
  ExitRest(kFailedCode, At(29.5));

  const cli::RunOutcome outcome = supervisor_.Outcome();
  EXPECT_EQ(outcome.verdict, Verdict::kFailed);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.bad_ends.front(), (cli::BadEnd{kPs, kKilled}));
  EXPECT_EQ(outcome.bad_ends.size(), 5u);
}

TEST_F(SupervisorTest, AJobThatLostAServerWasNotJustStopped) {
  supervisor_.OnTaskExit(kPs, kKilled, At(0));
  ExitRest(kStoppedCode, At(1));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kFailed);
}

TEST_F(SupervisorTest, TaskThatOverstaysIsTerminatedThenKilled) {
  supervisor_.OnTaskExit(kPs, kKilled, At(0));
  supervisor_.OnTaskExit(kChief, kFailedCode, At(1));
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(1));
  supervisor_.OnTaskExit(kEvaluator, kFailedCode, At(1));

  EXPECT_THAT(supervisor_.OnTime(At(30)),
              ElementsAre(Signal(kWorker1, SIGTERM)));
  EXPECT_THAT(supervisor_.OnTime(At(44)), IsEmpty());
  EXPECT_THAT(supervisor_.OnTime(At(45)),
              ElementsAre(Signal(kWorker1, SIGKILL)));
  EXPECT_THAT(supervisor_.OnTime(At(1000)), IsEmpty());
  supervisor_.OnTaskExit(kWorker1, kKilled, At(1000));

  EXPECT_TRUE(supervisor_.finished());
  EXPECT_THAT(supervisor_.Outcome().bad_ends,
              Contains(cli::BadEnd{kWorker1, kKilled, /*forced=*/true}));
}

TEST_F(SupervisorTest, RunDoesNotWaitForAChiefThatHasRefusedToStart) {
  supervisor_.OnTaskExit(kChief, {.code = 2}, At(0));

  EXPECT_THAT(supervisor_.OnTime(At(0.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(1)).size(), 4u);
  ExitRest(kStoppedCode, At(2));
  EXPECT_EQ(supervisor_.Outcome().exit_code, 2);
}

TEST_F(SupervisorTest, TheEndOfAnUnknownTaskIsIgnored) {
  supervisor_.OnTaskExit({TaskType::kWorker, 9}, kKilled, At(0));
  supervisor_.OnTaskExit(kPs, kOk, At(0));
  supervisor_.OnTaskExit(kPs, kKilled, At(0));
  ExitRest(kOk, At(1));

  EXPECT_THAT(supervisor_.Outcome().bad_ends, IsEmpty());
}

class SupervisorSettingsTest : public ::testing::Test {
 protected:
  static cli::Supervisor Make(int needed_workers, bool need_follows_settings) {
    return cli::Supervisor(
        {.tasks = {kPs, kChief, kWorker0, kWorker1, kWorker2},
         .chief = kChief,
         .needed_workers = needed_workers,
         .need_follows_settings = need_follows_settings});
  }

  static constexpr TaskId kWorker2 = {TaskType::kWorker, 2};
};

TEST_F(SupervisorSettingsTest, FewerGradientsNeedFewerWorkers) {
  cli::Supervisor supervisor = Make(3, /*need_follows_settings=*/true);
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnSettings({});  // the chief has not said them
  supervisor.OnSettings({.replicas_to_aggregate = 2});

  supervisor.OnTaskExit(kWorker1, kFailedCode, At(1));
  EXPECT_TRUE(supervisor.healthy());
  supervisor.OnTaskExit(kWorker2, kFailedCode, At(2));
  EXPECT_FALSE(supervisor.healthy());
}

TEST_F(SupervisorSettingsTest, MoreGradientsNeedMoreWorkers) {
  cli::Supervisor supervisor = Make(2, /*need_follows_settings=*/true);
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnSettings({.replicas_to_aggregate = 3});

  supervisor.OnTaskExit(kWorker1, kFailedCode, At(1));
  EXPECT_FALSE(supervisor.healthy());
}

// In compatible mode, for example, one worker makes any number of gradients.
TEST_F(SupervisorSettingsTest, NeedOfAJobThatOneWorkerCanStepStays) {
  cli::Supervisor supervisor = Make(1, /*need_follows_settings=*/false);
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnSettings({.replicas_to_aggregate = 3});

  supervisor.OnTaskExit(kWorker1, kFailedCode, At(1));
  EXPECT_TRUE(supervisor.healthy());
}

TEST_F(SupervisorSettingsTest, WorkersOfAnElasticJobAreThoseThatItNames) {
  cli::Supervisor supervisor = Make(2, /*need_follows_settings=*/true);
  supervisor.OnJobState(JobState::kTraining, At(0));
  // Worker 2 was removed, and worker 7 runs elsewhere.
  supervisor.OnTaskExit(kWorker2, kHeldCode, At(1));
  supervisor.OnSettings({.replicas_to_aggregate = 2, .workers = {0, 1, 7}});

  supervisor.OnTaskExit(kWorker0, kKilled, At(2));
  EXPECT_TRUE(supervisor.healthy());
  supervisor.OnTaskExit(kWorker1, kKilled, At(2));
  EXPECT_FALSE(supervisor.healthy());
}

// The chief takes it out.
TEST_F(SupervisorSettingsTest, AnElasticJobGoesOnWithoutAWorkerThatHasLeft) {
  cli::Supervisor supervisor = Make(3, /*need_follows_settings=*/true);
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnSettings({.replicas_to_aggregate = 3, .workers = {0, 1, 2}});

  supervisor.OnTaskExit(kWorker1, kFailedCode, At(1));
  supervisor.OnTaskExit(kWorker2, kFailedCode, At(1));
  EXPECT_TRUE(supervisor.healthy());
  supervisor.OnTaskExit(kWorker0, kFailedCode, At(1));
  EXPECT_FALSE(supervisor.healthy());
}

TEST_F(SupervisorSettingsTest, AWorkerThatHasComeBackFromOutsideCounts) {
  cli::Supervisor supervisor = Make(3, /*need_follows_settings=*/true);
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnSettings({.replicas_to_aggregate = 3, .workers = {0, 1, 2}});
  supervisor.OnTaskExit(kWorker0, kFailedCode, At(1));
  supervisor.OnSettings({.replicas_to_aggregate = 2, .workers = {1, 2}});
  supervisor.OnSettings({.replicas_to_aggregate = 3, .workers = {0, 1, 2}});

  supervisor.OnTaskExit(kWorker1, kFailedCode, At(2));
  supervisor.OnTaskExit(kWorker2, kFailedCode, At(2));
  EXPECT_TRUE(supervisor.healthy());
}

TEST(SupervisorWithoutChiefJobTest, WorkerZeroIsTheChief) {
  cli::Supervisor supervisor({.tasks = {kPs, kWorker0, kWorker1},
                              .chief = kWorker0,
                              .needed_workers = 1});

  supervisor.OnTaskExit(kWorker0, kKilled, At(0));

  EXPECT_FALSE(supervisor.healthy());
  supervisor.OnTaskExit(kPs, kFailedCode, At(1));
  supervisor.OnTaskExit(kWorker1, kFailedCode, At(1));
  EXPECT_EQ(supervisor.Outcome().verdict, Verdict::kFailed);
}

}  // namespace
}  // namespace lockstep::testing
