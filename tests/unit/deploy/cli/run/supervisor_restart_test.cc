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
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class SupervisorRestartTest : public ::testing::Test {
 protected:
  // Ends all running tasks, like a job that is done.
  cli::RunOutcome Finish(absl::Time now) {
    supervisor_.OnJobState(JobState::kDone, now);
    EndAll(kOk, now);
    return supervisor_.Outcome();
  }

  void EndAll(cli::TaskExit exit, absl::Time now) {
    for (const TaskId task : {kPs, kChief, kWorker0, kWorker1, kEvaluator}) {
      supervisor_.OnTaskExit(task, exit, now);
    }
  }

  cli::Supervisor supervisor_{
      {.tasks = {kPs, kChief, kWorker0, kWorker1, kEvaluator},
       .chief = kChief,
       .needed_workers = 2,
       .restarts = 2}};
};

TEST_F(SupervisorRestartTest, EveryRoleThatDiesStartsAgainAfterAPause) {
  for (const TaskId task : {kPs, kChief, kWorker0, kWorker1, kEvaluator}) {
    EXPECT_THAT(supervisor_.OnTaskExit(task, kKilled, At(0)), IsEmpty());
    EXPECT_EQ(supervisor_.RestartTime(task), At(0.5));
  }

  EXPECT_THAT(supervisor_.OnTime(At(0.4)), IsEmpty());
  EXPECT_FALSE(supervisor_.finished());
  EXPECT_THAT(supervisor_.OnTime(At(0.5)),
              UnorderedElementsAre(Start(kPs), Start(kChief), Start(kWorker0),
                                   Start(kWorker1), Start(kEvaluator)));
  EXPECT_THAT(supervisor_.OnTime(At(100)), IsEmpty());
  EXPECT_TRUE(supervisor_.healthy());
}

TEST_F(SupervisorRestartTest, ATaskThatAsksForItWithItsCodeStartsAgain) {
  for (const int code : {128, 129, 143, 255}) {
    cli::Supervisor supervisor(
        {.tasks = {kChief, kWorker0}, .chief = kChief, .restarts = 1});
    supervisor.OnTaskExit(kWorker0, {.code = code}, At(0));
    EXPECT_THAT(supervisor.OnTime(At(1)), ElementsAre(Start(kWorker0))) << code;
  }
}

TEST_F(SupervisorRestartTest, ATaskThatMustNotIsNotStartedAgain) {
  for (const int code : {0, 1, 2, 127}) {
    cli::Supervisor supervisor({.tasks = {kChief, kWorker0, kWorker1},
                                .chief = kChief,
                                .restarts = 1});
    supervisor.OnTaskExit(kWorker0, {.code = code}, At(0));
    EXPECT_THAT(supervisor.OnTime(At(100)), IsEmpty()) << code;
    EXPECT_FALSE(supervisor.RestartTime(kWorker0).has_value());
  }
}

TEST_F(SupervisorRestartTest, TheJobHasBegunOnceItsChiefIsBeyondItsStart) {
  EXPECT_FALSE(supervisor_.begun());
  supervisor_.OnJobState(JobState::kUnknown, At(0));
  supervisor_.OnJobState(JobState::kStarting, At(1));
  supervisor_.OnTaskExit(kChief, kKilled, At(2));
  EXPECT_THAT(supervisor_.OnTime(At(3)), ElementsAre(Start(kChief)));
  EXPECT_FALSE(supervisor_.begun());

  supervisor_.OnJobState(JobState::kTraining, At(4));
  EXPECT_TRUE(supervisor_.begun());

  // A chief that is started again goes on with the job.
  supervisor_.OnTaskExit(kChief, kKilled, At(5));
  supervisor_.OnJobState(JobState::kStarting, At(10));
  EXPECT_TRUE(supervisor_.begun());
}

TEST_F(SupervisorRestartTest, ADoneRunIsDoneThoughTasksDiedOnItsWay) {
  supervisor_.OnTaskExit(kPs, kKilled, At(0));
  supervisor_.OnTaskExit(kWorker1, kKilled, At(0));
  supervisor_.OnTime(At(1));
  supervisor_.OnTaskExit(kWorker1, kKilled, At(2));
  supervisor_.OnTime(At(4));

  const cli::RunOutcome outcome = Finish(At(5));

  EXPECT_EQ(outcome.verdict, Verdict::kDone);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.bad_ends, IsEmpty());
  EXPECT_THAT(outcome.restarts,
              UnorderedElementsAre(Pair(kPs, 1), Pair(kWorker1, 2)));
}

TEST_F(SupervisorRestartTest, AUsedUpBudgetEndsTheRunThroughTheChief) {
  for (const double second : {0, 10, 20}) {
    supervisor_.OnTime(At(second));
    EXPECT_TRUE(supervisor_.healthy());
    if (second == 20) break;
    EXPECT_THAT(supervisor_.OnTaskExit(kEvaluator, kKilled, At(second)),
                IsEmpty());
  }
  const std::string reason =
      "evaluator 0 died 3 times within 10 minutes, and --restarts allows 2; "
      "the last time it was ended by signal 9 (Killed)";

  EXPECT_THAT(supervisor_.OnTaskExit(kEvaluator, kKilled, At(20)),
              ElementsAre(AskToStop(reason)));
  EXPECT_THAT(supervisor_.OnTime(At(39)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(40)).size(), 4u);
  EndAll(kStoppedCode, At(41));

  const cli::RunOutcome outcome = supervisor_.Outcome();
  EXPECT_EQ(outcome.verdict, Verdict::kFailed);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.gave_up);
  EXPECT_EQ(outcome.reason, reason);
  EXPECT_THAT(outcome.bad_ends, ElementsAre(cli::BadEnd{kEvaluator, kKilled}));
}

TEST_F(SupervisorRestartTest, WithoutAChiefAGivenUpRunIsTerminatedAtOnce) {
  for (const double second : {0, 10}) {
    supervisor_.OnTaskExit(kChief, kKilled, At(second));
    supervisor_.OnTime(At(second + 5));
  }

  EXPECT_THAT(supervisor_.OnTaskExit(kChief, kKilled, At(20)),
              UnorderedElementsAre(
                  Signal(kPs, SIGTERM), Signal(kWorker0, SIGTERM),
                  Signal(kWorker1, SIGTERM), Signal(kEvaluator, SIGTERM)));
}

TEST_F(SupervisorRestartTest, TenQuietMinutesFillTheBudgetAgain) {
  for (const double second : {0, 300, 600, 900, 1200}) {
    supervisor_.OnTaskExit(kPs, kKilled, At(second));
    EXPECT_THAT(supervisor_.OnTime(At(second + 10)), ElementsAre(Start(kPs)));
  }
}

TEST_F(SupervisorRestartTest, NoTaskStartsAgainOnceTheRunEnds) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, {.code = 129}, At(0));

  supervisor_.OnTaskExit(kChief, kFailedCode, At(0.2));

  EXPECT_FALSE(supervisor_.RestartTime(kWorker0).has_value());
  EXPECT_THAT(supervisor_.OnTime(At(5)), IsEmpty());
  supervisor_.OnTaskExit(kWorker1, {.code = 129}, At(5));
  EXPECT_FALSE(supervisor_.RestartTime(kWorker1).has_value());
  EndAll(kOk, At(6));
  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kFailed);
  EXPECT_EQ(supervisor_.Outcome().bad_ends.front(),
            (cli::BadEnd{kWorker0, {.code = 129}}));
}

TEST_F(SupervisorRestartTest, AJobStoppedByAnOperatorIsNotTakenUpAgain) {
  supervisor_.OnTaskExit(kWorker0, kStoppedCode, At(0));
  supervisor_.OnTaskExit(kChief, kStoppedCode, At(0.1));
  EndAll(kStoppedCode, At(0.2));

  EXPECT_TRUE(supervisor_.finished());
  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kStopped);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 143);
}

TEST_F(SupervisorRestartTest, ASignalEndsARunOfWhichNothingRuns) {
  EndAll(kKilled, At(0));
  EXPECT_FALSE(supervisor_.finished());

  EXPECT_THAT(supervisor_.OnSignal(SIGINT, At(0.1)), IsEmpty());

  EXPECT_TRUE(supervisor_.finished());
  EXPECT_EQ(supervisor_.Outcome().exit_code, 130);
}

TEST_F(SupervisorRestartTest, WorkersAreNotStartedAgainAfterTheLastStep) {
  supervisor_.OnJobState(JobState::kFinishing, At(0));
  supervisor_.OnTaskExit(kWorker0, kKilled, At(1));
  supervisor_.OnTaskExit(kPs, kKilled, At(1));

  EXPECT_THAT(supervisor_.OnTime(At(2)), ElementsAre(Start(kPs)));
  EXPECT_TRUE(supervisor_.healthy());
}

TEST(SupervisorHostRestartTest,
     AWorkerWithTheChiefIsStartedAgainAfterTheLastStep) {
  cli::Supervisor supervisor(
      {.tasks = {kWorker0, kWorker1}, .chief = kWorker0, .restarts = 1});
  supervisor.OnJobState(JobState::kFinishing, At(0));
  supervisor.OnTaskExit(kWorker0, kKilled, At(1));

  EXPECT_THAT(supervisor.OnTime(At(2)), ElementsAre(Start(kWorker0)));
  EXPECT_TRUE(supervisor.healthy());
}

TEST(SupervisorHostRestartTest, AWorkerWithAMirrorIsToo) {
  cli::Supervisor supervisor(
      {.tasks = {kChief, kWorker0}, .chief = kChief, .restarts = 1});
  supervisor.OnJobState(JobState::kFinishing, At(0));
  supervisor.OnTaskExit(kWorker0, kKilled, At(1));

  EXPECT_THAT(supervisor.OnTime(At(2)), ElementsAre(Start(kWorker0)));
}

TEST_F(SupervisorRestartTest, ATaskThatCannotBeStartedAgainEndsTheRun) {
  supervisor_.OnTaskExit(kPs, kKilled, At(0));
  ASSERT_THAT(supervisor_.OnTime(At(1)), ElementsAre(Start(kPs)));

  EXPECT_THAT(
      supervisor_.OnStartFailed(kPs, "no such program", At(1)),
      ElementsAre(AskToStop("ps 0 cannot be started again: no such program")));
  EndAll(kStoppedCode, At(2));

  EXPECT_TRUE(supervisor_.finished());
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

TEST_F(SupervisorRestartTest, ATaskThatCannotBeStartedAgainWasNotRestarted) {
  supervisor_.OnTaskExit(kPs, kKilled, At(0));
  supervisor_.OnTime(At(1));
  supervisor_.OnTaskExit(kPs, {.signal = SIGSEGV}, At(2));
  supervisor_.OnTime(At(4));
  supervisor_.OnStartFailed(kPs, "no such program", At(4));
  EndAll(kStoppedCode, At(5));

  EXPECT_THAT(supervisor_.Outcome().restarts, ElementsAre(Pair(kPs, 1)));
  EXPECT_THAT(supervisor_.Outcome().bad_ends,
              Contains(cli::BadEnd{kPs, {.signal = SIGSEGV}}));
}

TEST_F(SupervisorRestartTest, TasksDueWithOneThatCannotBeStartedStayDown) {
  supervisor_.OnTaskExit(kWorker0, kKilled, At(0));
  supervisor_.OnTaskExit(kWorker1, kKilled, At(0));
  ASSERT_EQ(supervisor_.OnTime(At(1)).size(), 2u);
  ASSERT_EQ(supervisor_.OnStartFailed(kWorker0, "why", At(1)).size(), 1u);
  ASSERT_FALSE(supervisor_.healthy());

  EXPECT_THAT(supervisor_.OnStartFailed(kWorker1, "the run ends", At(1)),
              IsEmpty());
  EndAll(kStoppedCode, At(2));

  EXPECT_TRUE(supervisor_.finished());
  EXPECT_EQ(supervisor_.Outcome().reason,
            "worker 0 cannot be started again: why");
  EXPECT_THAT(supervisor_.Outcome().restarts, IsEmpty());
}

class SupervisorOfMirrorServersTest : public ::testing::Test {
 protected:
  SupervisorOfMirrorServersTest() {
    supervisor_.OnJobState(JobState::kTraining, At(0));
    supervisor_.OnSettings({.replicas_to_aggregate = 2, .workers = {0, 1}});
  }

  static constexpr TaskId kPs1 = {TaskType::kPs, 1};

  cli::Supervisor supervisor_{{.tasks = {kPs, kPs1, kChief, kWorker0, kWorker1},
                               .chief = kChief,
                               .needed_workers = 2,
                               .need_follows_settings = true,
                               .ps_are_mirrors = true}};
};

TEST_F(SupervisorOfMirrorServersTest, AnElasticJobGoesOnWithoutAMirror) {
  for (const cli::TaskExit exit : {kFailedCode, kKilled}) {
    cli::Supervisor supervisor = supervisor_;
    supervisor.OnTaskExit(kPs1, exit, At(1));
    EXPECT_THAT(supervisor.OnTime(At(60)), IsEmpty());
    EXPECT_TRUE(supervisor.healthy());

    supervisor.OnJobState(JobState::kDone, At(61));
    for (const TaskId task : {kPs, kChief, kWorker0, kWorker1}) {
      supervisor.OnTaskExit(task, kOk, At(62));
    }
    EXPECT_EQ(supervisor.Outcome().exit_code, 0);
    EXPECT_THAT(supervisor.Outcome().bad_ends,
                ElementsAre(cli::BadEnd{kPs1, exit}));
  }
}

TEST_F(SupervisorOfMirrorServersTest, TheFirstMirrorIsNeeded) {
  supervisor_.OnTaskExit(kPs, kFailedCode, At(1));
  EXPECT_FALSE(supervisor_.healthy());
}

TEST_F(SupervisorOfMirrorServersTest, OneWorkerWithAMirrorIsNeeded) {
  supervisor_.OnTaskExit(kPs1, kFailedCode, At(1));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(2));
  EXPECT_TRUE(supervisor_.healthy());
  supervisor_.OnTaskExit(kWorker0, kFailedCode, At(3));
  EXPECT_FALSE(supervisor_.healthy());
}

TEST(SupervisorOfMirrorsTest, AChiefThatComputesIsTheFirstWorker) {
  cli::Supervisor supervisor({.tasks = {kChief, kWorker0, kWorker1},
                              .chief = kChief,
                              .needed_workers = 3,
                              .need_follows_settings = true});
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnSettings({.replicas_to_aggregate = 3, .workers = {0, 1, 2}});
  supervisor.OnTaskExit(kWorker1, kKilled, At(1));
  // The chief has known it as worker 2.
  supervisor.OnSettings({.replicas_to_aggregate = 2, .workers = {0, 1}});

  supervisor.OnTaskExit(kWorker0, kKilled, At(2));

  EXPECT_TRUE(supervisor.healthy());
}

// Their mirrors are in the same processes.
TEST(SupervisorOfMirrorsTest, AnElasticJobGoesOnWithoutWorkersThatWereKilled) {
  for (const bool elastic : {true, false}) {
    cli::Supervisor supervisor({.tasks = {kWorker0, kWorker1},
                                .chief = kWorker0,
                                .needed_workers = 2,
                                .need_follows_settings = true});
    supervisor.OnJobState(JobState::kTraining, At(0));
    Settings settings{.replicas_to_aggregate = 2};
    if (elastic) settings.workers = {0, 1};
    supervisor.OnSettings(settings);

    supervisor.OnTaskExit(kWorker1, kKilled, At(1));

    EXPECT_EQ(supervisor.healthy(), elastic);
  }
}

}  // namespace
}  // namespace lockstep::testing
