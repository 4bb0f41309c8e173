// Elastic jobs of mirrors: a mirror that does not come back is given up.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class JobDriverMirrorsTest : public JobDriverTest {
 protected:
  JobDriverMirrorsTest() {
    servers = workers = 3;
    job.replicas_to_aggregate = 3;
    job.elastic_workers = true;
    job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  }

  RunSettings Without(int worker) {
    RunSettings settings = driver->settings();
    std::erase(settings.workers, worker);
    settings.replicas_to_aggregate = static_cast<int>(settings.workers.size());
    ++settings.revision;
    return settings;
  }

  void LeavePs(int index) {
    const TaskId task{TaskType::kPs, index};
    ASSERT_TRUE(members
                    ->Leave(task, members->Get(task).incarnation,
                            LeaveCause::kStopped, "bye", nullptr, now)
                    .ok());
  }

  // A chief that was started again, while mirror 2 and its worker are away.
  void StartWithout2() {
    Make();
    Join(TaskType::kPs, 0);
    Join(TaskType::kPs, 1);
    Join(TaskType::kWorker, 0);
    On(ModelDescribed{});
    Started();
  }

  static ServerReport NotAsked() {
    ServerReport report;
    report.takes_part = false;
    return report;
  }

  // Mirror 2 and its worker are given up.
  void GiveUp2() {
    Open();
    PassWithout(2, job.lease + absl::Seconds(1));
    ASSERT_THAT(PassWithout(2, job.lease), Contains("recover 0"));
  }
};

TEST_F(JobDriverMirrorsTest, MirrorThatDoesNotComeBackIsGivenUp) {
  Open();
  // Its lease ends; then the job waits for as long again.
  EXPECT_THAT(PassWithout(2, job.lease + absl::Seconds(1)),
              Not(Contains("recover 0")));
  EXPECT_THAT(waits, Contains(HasSubstr("ps 2 (gone), and goes on without it "
                                        "in ")));

  EXPECT_THAT(PassWithout(2, job.lease), Contains("recover 0"));

  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_TRUE(request.others_have_state);
  EXPECT_EQ(request.opened_epoch, 1U);
  EXPECT_THAT(said, Contains(HasSubstr("the job goes on without them")));
}

TEST_F(JobDriverMirrorsTest, WorkerOfAGivenUpMirrorIsTakenOut) {
  GiveUp2();

  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kResume, true),
              Contains("take out 2 (away)"));
  EXPECT_THAT(On(SettingsWanted{Without(2)}), IsEmpty());
  EXPECT_THAT(PassWithout(2, absl::Milliseconds(100)), Contains("recover 0"));

  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_FALSE(request.others_have_state);
  const Actions opened = Recovered(0, -1, RecoveryPlan::Action::kResume, true);
  EXPECT_THAT(opened, Contains("take 1 at 0"));
  EXPECT_THAT(opened, Not(Contains("take 2 at 0")));
}

TEST_F(JobDriverMirrorsTest, WorkersAskForThePlanAgain) {
  GiveUp2();

  EXPECT_EQ(members->Get({TaskType::kWorker, 1}).state,
            MembershipTable::State::kDead);
}

// A worker that registers during the round may have got the plan before it.
TEST_F(JobDriverMirrorsTest, WorkerThatCameDuringTheRoundAsksForThePlanAgain) {
  GiveUp2();
  const TaskId worker{TaskType::kWorker, 1};
  for (const auto& dead : members->TakeDead(now)) {
    members->Buried(dead.task, dead.incarnation);
  }
  Join(TaskType::kWorker, 1, 5);
  ASSERT_EQ(members->Get(worker).state, MembershipTable::State::kAlive);

  Recovered(0, -1, RecoveryPlan::Action::kResume, true);

  EXPECT_EQ(members->Get(worker).state, MembershipTable::State::kDead);
}

TEST_F(JobDriverMirrorsTest, MirrorThatLeavesDoesNotStopTheJob) {
  Open();
  LeavePs(1);

  EXPECT_THAT(PassWithout(1, absl::Milliseconds(200)), Contains("recover 0"));

  EXPECT_THAT(request.servers, ElementsAre(0, 2));
}

TEST_F(JobDriverMirrorsTest, MirrorThatCommitsStopsTheJobAsItLeaves) {
  Open();
  LeavePs(0);

  EXPECT_THAT(PassWithout(0, 2 * job.lease), Contains("close settings"));

  EXPECT_THAT(said, Not(Contains(HasSubstr("goes on without"))));
}

TEST_F(JobDriverMirrorsTest, MirrorThatIsBackInTimeTakesPart) {
  Open();
  PassWithout(2, job.lease + absl::Seconds(1));
  Join(TaskType::kPs, 2, 2);

  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("recover 0"));

  EXPECT_THAT(request.servers, ElementsAre(0, 1, 2));
}

TEST_F(JobDriverMirrorsTest, JobThatMustStopGivesUpTheAbsentAtOnce) {
  Open();
  PassWithout(2, job.lease + absl::Seconds(1));
  Stop();

  EXPECT_THAT(PassWithout(2, absl::Milliseconds(200)), Contains("recover 0"));

  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_THAT(said, Contains(HasSubstr("the job stops without them")));
}

// The call to the mirror ends with its deadline, when the stop has no patience
// any more.
TEST_F(JobDriverMirrorsTest, LastCheckpointDoesWithoutAMirrorThatHangs) {
  job.train_steps = 1;
  Open();
  ASSERT_THAT(Step(), Contains("close tokens"));
  Stop();
  PassWithout(2, absl::Seconds(10));

  EXPECT_THAT(Closed(absl::DeadlineExceededError("ps 2: late")),
              Contains("recover 1"));

  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_THAT(said, Contains(HasSubstr("the job stops without them")));
  EXPECT_THAT(Recovered(1, -1, RecoveryPlan::Action::kResume, true),
              Contains("close tokens"));
}

TEST_F(JobDriverMirrorsTest, LastCheckpointIsNotTriedForEver) {
  job.train_steps = 1;
  Open();
  ASSERT_THAT(Step(), Contains("close tokens"));
  Stop();
  Pass(absl::Seconds(10));

  EXPECT_THAT(Closed(absl::DeadlineExceededError("ps 2: late")),
              Contains(HasSubstr("failed: the last checkpoint")));
}

TEST_F(JobDriverMirrorsTest, MirrorThatWasGivenUpIsTakenBackAsNoDeath) {
  GiveUp2();
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kResume, true),
              Contains(HasSubstr("lost: 1")));
  Join(TaskType::kPs, 2, 2);

  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("recover 0"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1, 2));
  EXPECT_THAT(said, Contains(HasSubstr("ps 2, which was given up, is back")));
  said.clear();
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kResume, true),
              Contains(HasSubstr("lost: 1")));

  EXPECT_THAT(said, Contains(HasSubstr("with the mirrors that are back")));
  EXPECT_THAT(said, Not(Contains(HasSubstr("stood still"))));
}

TEST_F(JobDriverMirrorsTest, DeathWhileAMirrorIsTakenBackIsADeath) {
  GiveUp2();
  Recovered(0, -1, RecoveryPlan::Action::kResume, true);
  Join(TaskType::kPs, 2, 2);
  Pass(absl::Milliseconds(100));
  RoundFailed(absl::UnavailableError("ps 1 does not answer"));
  LeavePs(1);
  ASSERT_THAT(PassWithout(1, absl::Milliseconds(200)), Contains("recover 0"));

  Recovered(0, -1, RecoveryPlan::Action::kResume, true);

  EXPECT_THAT(request.servers, ElementsAre(0, 2));
  EXPECT_THAT(said, Not(Contains(HasSubstr("the mirrors that are back"))));
}

TEST_F(JobDriverMirrorsTest, StateThatIsElsewhereBringsAllBack) {
  GiveUp2();

  driver->OnStateElsewhere();
  RoundFailed(absl::UnavailableError("the state is elsewhere"));

  EXPECT_THAT(PassWithout(2, 3 * job.lease), Not(Contains("recover 0")));
  Join(TaskType::kPs, 2, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("recover 0"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1, 2));
}

TEST_F(JobDriverMirrorsTest, MirrorThatCannotBeOpenedEndsNoJob) {
  GiveUp2();
  Recovered(0, -1, RecoveryPlan::Action::kResume, true);
  Join(TaskType::kPs, 2, 2);
  Pass(absl::Milliseconds(100));
  ASSERT_THAT(request.servers, ElementsAre(0, 1, 2));
  said.clear();

  driver->deaths().LeaveOut(2, absl::ResourceExhaustedError("ps 2: no memory"));
  RoundFailed(absl::UnavailableError("ps 2: no memory"));

  EXPECT_THAT(Pass(absl::Milliseconds(200)), Contains("recover 0"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_THAT(said, Contains(HasSubstr("mirror 2 cannot take part (ps 2: no "
                                       "memory); the job goes on without it")));
  EXPECT_THAT(said, Not(Contains(HasSubstr("do not come back"))));
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kResume, true),
              Contains("take out 2 (away)"));

  // The same process is not tried again, and a new one is.
  EXPECT_THAT(Pass(2 * job.lease), Not(Contains("recover 0")));
  Join(TaskType::kPs, 2, 3);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("recover 0"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1, 2));
}

TEST_F(JobDriverMirrorsTest, MirrorWhoseErrorMayPassIsTriedAgain) {
  GiveUp2();
  Recovered(0, -1, RecoveryPlan::Action::kResume, true);
  Join(TaskType::kPs, 2, 2);
  Pass(absl::Milliseconds(100));

  driver->deaths().LeaveOut(2, absl::UnavailableError("ps 2: no answer"));
  RoundFailed(absl::UnavailableError("ps 2: no answer"));

  EXPECT_THAT(Pass(absl::Milliseconds(200)), Contains("recover 0"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1, 2));
}

TEST_F(JobDriverMirrorsTest, MirrorOfANewWorkerTakesPart) {
  GiveUp2();
  Recovered(0, -1, RecoveryPlan::Action::kResume, true);
  const RunSettings all = driver->settings();
  On(SettingsWanted{Without(2)});
  PassWithout(2, absl::Milliseconds(100));
  Recovered(0, -1, RecoveryPlan::Action::kResume, true);
  Join(TaskType::kPs, 2, 2);

  RunSettings wanted = all;
  wanted.revision = driver->settings().revision + 1;
  On(SettingsWanted{wanted});

  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("recover 0"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1, 2));
}

TEST_F(JobDriverMirrorsTest, ChiefThatStartsAsksTheMirrorsThatAreThere) {
  StartWithout2();

  EXPECT_THAT(Pass(job.lease + absl::Milliseconds(100)), Contains("recover"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1));

  // No server has any state: the job starts, and needs all.
  driver->OnFound({{ServerReport(), ServerReport(), NotAsked()}});
  RoundFailed(absl::UnavailableError("ps 2 takes part"));
  EXPECT_THAT(Pass(2 * job.max_wait), Not(Contains("recover")));
  Join(TaskType::kPs, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("recover"));
}

TEST_F(JobDriverMirrorsTest, ChiefThatStartsLearnsTheWorkersFromTheServers) {
  StartWithout2();
  Pass(job.lease + absl::Milliseconds(100));
  ServerReport open;
  open.committed_step = 4;
  open.settings = Without(2);

  driver->OnFound({{open, open, NotAsked()}});

  EXPECT_THAT(driver->Servers(), ElementsAre(0, 1));
  EXPECT_THAT(driver->settings().workers, ElementsAre(0, 1));
}

}  // namespace
}  // namespace lockstep::chief
