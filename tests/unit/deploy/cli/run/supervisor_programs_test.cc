// Programs of the user as workers.

#include <signal.h>

#include "deploy/cli/run/supervisor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/deploy/cli/run/supervisor_fixture.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SupervisorProgramsTest : public ::testing::Test {
 protected:
  cli::Supervisor supervisor_{{.tasks = {kPs, kChief, kWorker0, kWorker1},
                               .chief = kChief,
                               .needed_workers = 2,
                               .programs = true}};
};

TEST_F(SupervisorProgramsTest, ProgramThatLeavesItsLoopEndsTheRun) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker1, kOk, At(1));
  EXPECT_THAT(supervisor_.OnTime(At(5.9)), IsEmpty());

  const auto actions = supervisor_.OnTime(At(6));

  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, Kind::kAskToStop);
  EXPECT_THAT(actions[0].reason,
              HasSubstr("the program of worker 1 ended with exit code 0"));
  for (const TaskId task : {kPs, kChief, kWorker0}) {
    supervisor_.OnTaskExit(task, kStoppedCode, At(7));
  }
  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kFailed);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
  // The program may be in either language.
  EXPECT_THAT(supervisor_.Outcome().reason,
              AllOf(HasSubstr("steps()"), HasSubstr("Session::Next()")));
}

TEST_F(SupervisorProgramsTest, DoneJobWhoseProgramIsCutOffByASignalExitsOne) {
  supervisor_.OnJobState(JobState::kDone, At(0));
  for (const TaskId task : {kPs, kWorker0}) {
    supervisor_.OnTaskExit(task, kOk, At(1));
  }
  // The program of worker 1 still writes results of its own.
  supervisor_.OnSignal(SIGINT, At(2));
  supervisor_.OnTaskExit(kChief, kOk, At(3));
  supervisor_.OnSignal(SIGINT, At(4));
  supervisor_.OnTaskExit(kWorker1, kKilled, At(4));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
  EXPECT_THAT(supervisor_.Outcome().bad_ends,
              ElementsAre(cli::BadEnd{kWorker1, kKilled, /*forced=*/true}));
}

// Two programs of a job whose workers may come and go.
class SupervisorElasticProgramsTest : public ::testing::Test {
 protected:
  cli::Supervisor supervisor_{{.tasks = {kPs, kChief, kWorker0, kWorker1},
                               .chief = kChief,
                               .needed_workers = 2,
                               .need_follows_settings = true,
                               .elastic_programs = true}};
};

TEST_F(SupervisorElasticProgramsTest, ProgramsThatAllLeaveAtOnceEndTheRun) {
  supervisor_.OnJobState(JobState::kStarting, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  EXPECT_THAT(
      supervisor_.OnTime(At(9)),
      ElementsAre(::testing::Field(&cli::SupervisorAction::kind, Kind::kNote)));
  supervisor_.OnTaskExit(kWorker1, kOk, At(10));
  EXPECT_THAT(supervisor_.OnTime(At(14.9)), IsEmpty());

  const auto actions = supervisor_.OnTime(At(15));

  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, Kind::kAskToStop);
  EXPECT_THAT(actions[0].reason,
              HasSubstr("the program of worker 0 ended with exit code 0"));
}

// The others only do what the run then asks of them.
TEST_F(SupervisorElasticProgramsTest, ProgramsThatLeftAreTheCauseOfTheEnd) {
  supervisor_.OnJobState(JobState::kStarting, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnTaskExit(kWorker1, kOk, At(2));
  supervisor_.OnTime(At(10));
  supervisor_.OnTaskExit(kPs, kStoppedCode, At(11));
  supervisor_.OnTaskExit(kChief, kStoppedCode, At(11));
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
  EXPECT_EQ(supervisor_.Outcome().bad_ends,
            (std::vector<cli::BadEnd>{
                {.task = kWorker0, .exit = kOk, .quit = true},
                {.task = kWorker1, .exit = kOk, .quit = true}}));
}

TEST_F(SupervisorElasticProgramsTest, ProgramThatLeftTheJobIsNotMissed) {
  supervisor_.OnJobState(JobState::kStarting, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnSettings({.replicas_to_aggregate = 1, .workers = {1}});

  supervisor_.OnTime(At(60));

  EXPECT_TRUE(supervisor_.healthy());
}

TEST_F(SupervisorElasticProgramsTest, ProgramsMayLeaveAJobThatHasBegun) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnTaskExit(kWorker1, kOk, At(1));

  EXPECT_THAT(supervisor_.OnTime(At(60)), IsEmpty());
  EXPECT_TRUE(supervisor_.healthy());
}

// Two programs, of which the job needs one.
cli::Supervisor::Options WithABackup() {
  return {.tasks = {kChief, kWorker0, kWorker1},
          .chief = kChief,
          .needed_workers = 1,
          .programs = true};
}

TEST(SupervisorBackupTest, ProgramWhoseEpochsAreOverMayEndBeforeTheOthers) {
  cli::Supervisor::Options options = WithABackup();
  options.input_ends = true;
  cli::Supervisor supervisor(options);
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnTaskExit(kWorker1, kOk, At(1));
  EXPECT_THAT(supervisor.OnTime(At(30)), IsEmpty());
}

TEST(SupervisorBackupTest, ProgramThatLeavesABackupsPlaceIsNotedOnce) {
  cli::Supervisor supervisor(WithABackup());
  supervisor.OnJobState(JobState::kTraining, At(0));
  supervisor.OnTaskExit(kWorker1, kOk, At(1));
  EXPECT_THAT(supervisor.OnTime(At(2.9)), IsEmpty());

  const auto actions = supervisor.OnTime(At(3));

  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, Kind::kNote);
  EXPECT_THAT(actions[0].reason,
              AllOf(HasSubstr("the program of worker 1 ended with exit code 0"),
                    HasSubstr("steps()"), HasSubstr("goes on without it")));
  EXPECT_THAT(supervisor.OnTime(At(4)), IsEmpty());
  EXPECT_TRUE(supervisor.healthy());
  supervisor.OnJobState(JobState::kDone, At(9));
  supervisor.OnTaskExit(kWorker0, kOk, At(9));
  supervisor.OnTaskExit(kChief, kOk, At(9));
  EXPECT_EQ(supervisor.Outcome().exit_code, 0);
  EXPECT_EQ(supervisor.Outcome().bad_ends,
            (std::vector<cli::BadEnd>{
                {.task = kWorker1, .exit = kOk, .quit = true}}));
}

TEST_F(SupervisorProgramsTest, ProgramThatEndsWithTheCodeOfAStopHasFailed) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker1, kHeldCode, At(1));
  supervisor_.OnTime(At(5.9));
  EXPECT_TRUE(supervisor_.healthy());

  supervisor_.OnTime(At(6));

  EXPECT_FALSE(supervisor_.healthy());
  EXPECT_THAT(supervisor_.OnTime(At(11)), Not(IsEmpty()));
  for (const TaskId task : {kPs, kChief, kWorker0}) {
    supervisor_.OnTaskExit(task, kStoppedCode, At(12));
  }
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
  EXPECT_EQ(supervisor_.Outcome().bad_ends.front(),
            (cli::BadEnd{kWorker1, kHeldCode}));
  EXPECT_THAT(supervisor_.Outcome().reason,
              AllOf(HasSubstr("worker 1"), HasSubstr("code 3")));
}

TEST_F(SupervisorProgramsTest, ProgramMayHearOfAStopBeforeTheLauncher) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  for (const TaskId task : {kWorker0, kWorker1}) {
    supervisor_.OnTaskExit(task, kHeldCode, At(1));
  }
  supervisor_.OnJobState(JobState::kStopped, At(2));
  supervisor_.OnTime(At(8));
  for (const TaskId task : {kPs, kChief}) {
    supervisor_.OnTaskExit(task, kHeldCode, At(9));
  }

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kStopped);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 3);
  EXPECT_THAT(supervisor_.Outcome().bad_ends, IsEmpty());
}

TEST_F(SupervisorProgramsTest, ProgramThatNeverJoinsEndsTheRun) {
  supervisor_.OnJobState(JobState::kStarting, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnTaskExit(kWorker1, kOk, At(3));

  EXPECT_THAT(supervisor_.OnTime(At(7.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(8)).size(), 1u);
}

TEST_F(SupervisorProgramsTest, ProgramMayEndBeforeTheLauncherHearsOfTheEnd) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnTaskExit(kWorker1, kOk, At(1));
  supervisor_.OnJobState(JobState::kFinishing, At(2));

  EXPECT_THAT(supervisor_.OnTime(At(100)), IsEmpty());
  EXPECT_TRUE(supervisor_.healthy());
}

// Worker 0 is a program that hosts the chief.
class SupervisorHostingTest : public ::testing::Test {
 protected:
  cli::Supervisor supervisor_{{.tasks = {kWorker0, kWorker1},
                               .chief = kWorker0,
                               .needed_workers = 2,
                               .programs = true,
                               .chief_in_program = true}};
};

TEST_F(SupervisorHostingTest, AHostThatNeverJoinsFailsTheRun) {
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  EXPECT_THAT(supervisor_.OnTime(At(5.9)), IsEmpty());
  EXPECT_THAT(supervisor_.OnTime(At(6)),
              ElementsAre(Signal(kWorker1, SIGTERM)));
  supervisor_.OnTaskExit(kWorker1, kStoppedCode, At(7));

  const cli::RunOutcome outcome = supervisor_.Outcome();
  EXPECT_EQ(outcome.verdict, Verdict::kFailed);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.gave_up);
  EXPECT_THAT(outcome.reason,
              AllOf(HasSubstr("the program of worker 0 ended with exit code 0"),
                    HasSubstr("steps()")));
}

TEST_F(SupervisorHostingTest, AHostThatLeavesItsLoopFailsTheRun) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnTaskExit(kWorker1, kOk, At(2));

  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

TEST_F(SupervisorHostingTest, AHostMayEndWhenItsJobFinishes) {
  supervisor_.OnJobState(JobState::kFinishing, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnTaskExit(kWorker1, kOk, At(1));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 0);
}

TEST_F(SupervisorHostingTest, AStateThatComesAfterTheHostsEndCounts) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kOk, At(1));
  supervisor_.OnTaskExit(kWorker1, kOk, At(1));
  supervisor_.OnJobState(JobState::kDone, At(1));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 0);
}

// Its code need not be that of the job.
TEST_F(SupervisorHostingTest, AHostThatEndsWithTheCodeOfAStopFailsTheRun) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker0, kHeldCode, At(1));
  EXPECT_THAT(supervisor_.OnTime(At(5.9)), IsEmpty());
  EXPECT_EQ(supervisor_.OnTime(At(6)).size(), 1u);
  supervisor_.OnTaskExit(kWorker1, kStoppedCode, At(7));

  const cli::RunOutcome outcome = supervisor_.Outcome();
  EXPECT_EQ(outcome.verdict, Verdict::kFailed);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.bad_ends.front(), cli::BadEnd({kWorker0, kHeldCode}));
  EXPECT_EQ(outcome.reason,
            "the program of worker 0 ended with exit code 3, and its chief had "
            "not stopped the job");
}

TEST_F(SupervisorHostingTest, AHostMayEndWithTheCodeOfItsStoppedJob) {
  for (const bool heard_before : {true, false}) {
    cli::Supervisor supervisor({.tasks = {kWorker0},
                                .chief = kWorker0,
                                .programs = true,
                                .chief_in_program = true});
    supervisor.OnJobState(JobState::kTraining, At(0));
    if (heard_before) supervisor.OnJobState(JobState::kStopped, At(1));
    supervisor.OnTaskExit(kWorker0, kHeldCode, At(1));
    if (!heard_before) supervisor.OnJobState(JobState::kStopped, At(1));

    EXPECT_EQ(supervisor.Outcome().verdict, Verdict::kStopped);
    EXPECT_EQ(supervisor.Outcome().exit_code, 3);
  }
}

// Exit code 0 is that of the user's program, which says nothing of the job.
TEST_F(SupervisorHostingTest, AHostThatIsStoppedByASignalIsNotDone) {
  supervisor_.OnSignal(SIGINT, At(1));
  supervisor_.OnJobState(JobState::kFinishing, At(1));
  supervisor_.OnTaskExit(kWorker0, kOk, At(2));
  supervisor_.OnTaskExit(kWorker1, kOk, At(2));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kInterrupted);
}

TEST_F(SupervisorHostingTest, AHostEndsWithTheCodeOfAStopAfterASignal) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnSignal(SIGINT, At(1));
  supervisor_.OnTaskExit(kWorker1, kStoppedCode, At(2));
  supervisor_.OnTaskExit(kWorker0, kStoppedCode, At(2));

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kInterrupted);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 130);
}

TEST_F(SupervisorProgramsTest, ADoneJobWhoseProgramFailsAfterwardsExitsOne) {
  supervisor_.OnJobState(JobState::kFinishing, At(0));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(1));
  for (const TaskId task : {kPs, kWorker0, kChief}) {
    supervisor_.OnTaskExit(task, kOk, At(2));
  }

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

// It may fail before the launcher has heard of the end.
TEST_F(SupervisorProgramsTest, AProgramThatFailsAtTheEndOfItsJobDoesSoToo) {
  supervisor_.OnJobState(JobState::kTraining, At(0));
  supervisor_.OnTaskExit(kWorker1, kFailedCode, At(1));
  supervisor_.OnJobState(JobState::kDone, At(1));
  for (const TaskId task : {kPs, kWorker0, kChief}) {
    supervisor_.OnTaskExit(task, kOk, At(2));
  }

  EXPECT_EQ(supervisor_.Outcome().verdict, Verdict::kDone);
  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

// The first bad end is the reason for the exit code.
TEST(SupervisorDoneTest, AProgramThatFailsAtTheEndComesBeforeABackupThatDied) {
  for (const bool heard : {true, false}) {
    constexpr TaskId kBackup = {TaskType::kWorker, 2};
    cli::Supervisor supervisor(
        {.tasks = {kPs, kChief, kWorker0, kWorker1, kBackup},
         .chief = kChief,
         .needed_workers = 2,
         .programs = true});
    supervisor.OnJobState(JobState::kTraining, At(0));
    supervisor.OnTaskExit(kBackup, kKilled, At(1));
    if (heard) supervisor.OnJobState(JobState::kFinishing, At(2));
    supervisor.OnTaskExit(kWorker1, kFailedCode, At(2));
    supervisor.OnJobState(JobState::kDone, At(2));
    for (const TaskId task : {kPs, kWorker0, kChief}) {
      supervisor.OnTaskExit(task, kOk, At(3));
    }

    EXPECT_EQ(supervisor.Outcome().exit_code, 1);
    EXPECT_THAT(supervisor.Outcome().bad_ends,
                ElementsAre(cli::BadEnd{kWorker1, kFailedCode},
                            cli::BadEnd{kBackup, kKilled}));
  }
}

TEST_F(SupervisorProgramsTest, ADoneJobWithAProgramThatHadToBeForcedExitsOne) {
  supervisor_.OnJobState(JobState::kDone, At(0));
  for (const TaskId task : {kPs, kChief, kWorker0}) {
    supervisor_.OnTaskExit(task, kOk, At(1));
  }
  supervisor_.OnTime(At(30));
  supervisor_.OnTaskExit(kWorker1, kStoppedCode, At(31));

  EXPECT_EQ(supervisor_.Outcome().exit_code, 1);
}

}  // namespace
}  // namespace lockstep::testing
