// Members that die, leave, or hold up a step.

#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

const TaskId kWorker1{TaskType::kWorker, 1};
const TaskId kPs1{TaskType::kPs, 1};

class JobDriverDeathsTest : public JobDriverTest {
 protected:
  // The worker is silent until its lease has ended.
  Actions Kill(const TaskId& task) {
    return PassWithout(task, job.lease + absl::Milliseconds(100));
  }
};

TEST_F(JobDriverDeathsTest, DeadWorkerIsTakenOutOnPsZeroFirst) {
  Open();
  EXPECT_THAT(Kill(kWorker1), ElementsAre("expire 1 of 1 on 0"));
}

TEST_F(JobDriverDeathsTest, OtherServersAreAskedAtOnceWithWhatPsZeroSaid) {
  servers = 3;
  Open();
  Kill(kWorker1);
  EXPECT_THAT(Expired(0, 1, 5),
              ElementsAre("expire 1 of 1 on 1 #5", "expire 1 of 1 on 2 #5"));
}

TEST_F(JobDriverDeathsTest, SuccessorMayJoinOnceAllServersHaveAnswered) {
  Open();
  Kill(kWorker1);
  Expired(0, 1);
  EXPECT_TRUE(absl::IsUnavailable(members->Register(kWorker1, 2, now)));
  EXPECT_THAT(Expired(1, 1), ElementsAre("worker 1 died with nothing"));
  EXPECT_EQ(members->Register(kWorker1, 2, now), absl::OkStatus());
}

TEST_F(JobDriverDeathsTest, BurialIsAskedForOnce) {
  Open();
  Kill(kWorker1);
  EXPECT_THAT(Pass(absl::Seconds(5)), IsEmpty());
}

TEST_F(JobDriverDeathsTest, ServerThatHangsDoesNotHoldUpTheStepOrOthers) {
  workers = 3;
  Open();
  Kill(kWorker1);
  Expired(0, 1);  // ps 1 does not answer
  EXPECT_THAT(Step(), ElementsAre("at 1", "take 0 at 1", "take 1 at 1"));
  EXPECT_THAT(Kill({TaskType::kWorker, 2}), ElementsAre("expire 2 of 1 on 0"));
}

TEST_F(JobDriverDeathsTest, BurialThatFailsIsTriedAgainAfterAPause) {
  Open();
  Kill(kWorker1);
  Expired(0, 1);
  EXPECT_THAT(
      On(ExpireAnswered{round, 1, 1, absl::DeadlineExceededError("no answer")}),
      IsEmpty());
  EXPECT_THAT(said, Contains("worker 1: ps 1: no answer; trying again"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("expire 1 of 1 on 0"));
}

TEST_F(JobDriverDeathsTest, HeldAnnouncementRedoesTheStep) {
  Open();
  Prepared(1, 1);
  Kill(kWorker1);
  EXPECT_THAT(Expired(0, 1, 2, /*held_announcement=*/true),
              ElementsAre("expire 1 of 1 on 1 #2", "take 1 at 0 #2"));
  EXPECT_THAT(Expired(1, 1, 2),
              ElementsAre("worker 1 died with an announcement", "lost: 0 1 0"));
}

TEST_F(JobDriverDeathsTest, NewerChiefThatRefusesABurialEndsThisOne) {
  Open();
  Kill(kWorker1);
  EXPECT_THAT(On(ExpireAnswered{round, 0, 1, absl::AbortedError("epoch 9")}),
              Contains(HasSubstr("finish UNAVAILABLE: a newer chief")));
}

TEST_F(JobDriverDeathsTest, BurialThatARoundInterruptsBeginsAnewAfterIt) {
  Open();
  Kill(kWorker1);
  Kill(kPs1);
  EXPECT_THAT(Expired(0, 1), IsEmpty());
  Join(TaskType::kPs, 1, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 0"));
  Recovered(0, -1, RecoveryPlan::Action::kResume);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("expire 1 of 1 on 0"));
}

TEST_F(JobDriverDeathsTest, DeadServerBringsTheServersTogetherOnceItIsBack) {
  Open();
  EXPECT_THAT(Kill(kPs1), ElementsAre("ps 1 died with its share of step 0"));
  EXPECT_THAT(waits, ElementsAre("the job: ps 1 (gone)"));
  EXPECT_THAT(Pass(absl::Seconds(1)), IsEmpty());
  Join(TaskType::kPs, 1, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 0"));
}

TEST_F(JobDriverDeathsTest, JobGoesOnAfterAServerWasAway) {
  Open();
  Step();
  Kill(kPs1);
  Join(TaskType::kPs, 1, 2);
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(Recovered(1, -1, RecoveryPlan::Action::kResume, /*redo=*/true),
              ElementsAre("redone: step 2", "at 1", "lost: 1 1 0",
                          "take 0 at 1", "take 1 at 1"));
  EXPECT_THAT(said, Contains(HasSubstr("the job goes on from step 1 (it was at "
                                       "1), epoch 2; it stood still for ")));
}

TEST_F(JobDriverDeathsTest, StepsThatWereLostAreRepeated) {
  Open();
  Step();
  Step();
  Kill(kPs1);
  Join(TaskType::kPs, 1, 2);
  Pass(absl::Milliseconds(100));
  RecoveryPlan plan;
  plan.action = RecoveryPlan::Action::kGoBack;
  JobActions actions;
  EXPECT_EQ(driver->OnStartFrom(plan, /*first=*/false, -1, actions),
            absl::InfinitePast());
  EXPECT_EQ(driver->step(), 0);
  EXPECT_TRUE(
      std::any_of(actions.begin(), actions.end(), [](const JobAction& action) {
        const auto* report = std::get_if<JobReport>(&action);
        return report != nullptr && std::holds_alternative<WentBack>(*report);
      }));
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kGoBack),
              Contains("redone: committed steps 1 to 2"));
}

TEST_F(JobDriverDeathsTest, StepsThatAllServersHaveLostAreCountedAsRepeated) {
  Open();
  Step();
  Step();
  Kill(kPs1);
  Join(TaskType::kPs, 1, 2);
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(Recovered(0),
              IsSupersetOf({"redone: committed steps 1 to 2", "lost: 1 0 2"}));
}

TEST_F(JobDriverDeathsTest, RoundAfterOneThatWentBackKnowsTheEarlierStep) {
  Open();
  Step();
  Kill(kPs1);
  Join(TaskType::kPs, 1, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 1"));
  RecoveryPlan plan;
  plan.action = RecoveryPlan::Action::kGoBack;
  JobActions actions;
  driver->OnStartFrom(plan, /*first=*/false, -1, actions);
  RoundFailed(absl::UnavailableError("ps 0: gone"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 0"));
}

TEST_F(JobDriverDeathsTest, ServersThatStayAwayFailTheJobAfterMaxWait) {
  Open();
  Kill(kPs1);
  EXPECT_THAT(PassWithout(kPs1, job.max_wait),
              Contains("failed: the job waited longer than max_wait (1m) for "
                       "ps 1 (gone)"));
}

TEST_F(JobDriverDeathsTest, StopWhileAServerIsAwayFailsTheJobAfterALease) {
  Open();
  Kill(kPs1);
  Stop();
  EXPECT_THAT(PassWithout(kPs1, job.lease), IsEmpty());
  EXPECT_THAT(PassWithout(kPs1, absl::Milliseconds(200)),
              Contains("failed: enough, while ps 1 (gone) is away"));
}

// For example because it sends heartbeats, but its port is blocked.
TEST_F(JobDriverDeathsTest, StopWhileRoundsFailFailsTheJobAfterALease) {
  Open();
  Kill(kPs1);
  Join(TaskType::kPs, 1, 2);
  Pass(absl::Milliseconds(100));
  Stop();
  const absl::Status why = absl::UnavailableError("ps 1: no answer");
  const absl::Time limit = now + job.lease;
  Actions last = {"recover 0"};
  while (last == Actions{"recover 0"} && now <= limit) {
    RoundFailed(why);
    last = Pass(absl::Milliseconds(100));
  }
  EXPECT_THAT(last,
              Contains("failed: enough, while the servers cannot be brought "
                       "together: ps 1: no answer"));
  EXPECT_GT(now, limit - absl::Seconds(1));
}

TEST_F(JobDriverDeathsTest, LongRoundThatFailsOnceIsRepeated) {
  Open();
  Kill(kPs1);
  Join(TaskType::kPs, 1, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 0"));
  EXPECT_THAT(Pass(2 * job.max_wait), IsEmpty());
  RoundFailed(absl::UnavailableError("ps 1: no answer"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 0"));
}

TEST_F(JobDriverDeathsTest, AStopDoesNotWaitForWorkersThatHaveLeft) {
  Open();
  Stop();
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Not(Contains("close tokens")));
  Leave(1, LeaveCause::kStopped);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("close tokens"));
  EXPECT_THAT(Closed(), Contains("stopped: enough"));
}

TEST_F(JobDriverDeathsTest, ServerThatLeavesStopsTheJob) {
  Open();
  ASSERT_EQ(
      members->Leave(kPs1, 1, LeaveCause::kStopped, "SIGTERM", nullptr, now),
      absl::OkStatus());
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(Step(),
              ElementsAre("at 1", "tell of commit 1 #1", "close settings",
                          "finishing", "close tokens"));
  EXPECT_THAT(Closed(), Contains("stopped: ps 1 left: SIGTERM"));
}

TEST_F(JobDriverDeathsTest, FullTableEndsTheJobWithACheckpoint) {
  job.checkpoint.directory = "/checkpoints";
  Open();
  Leave(1, LeaveCause::kNoRoom, "no room for more rows");
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("close settings", "close tokens"));
  EXPECT_THAT(Closed(), ElementsAre("copy 0"));
  Copied(0);
  EXPECT_THAT(Written(0),
              ElementsAre("saved 0", "all is saved", "close settings", "sum up",
                          "failed: worker 1 left: no room for more rows"));
}

TEST_F(JobDriverDeathsTest, TooFewWorkersThatCanTakePartEndTheJob) {
  Open();
  Leave(1, LeaveCause::kCannotTakePart, "NaN");
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              Contains("failed: worker 1 left: NaN; 1 of 2 workers are left, "
                       "and a step needs 2"));
}

// The program of worker 1 carries the chief, and stops it when it fails.
TEST_F(JobDriverDeathsTest, FailureOfAWorkerCountsBeforeAStop) {
  Open();
  Leave(1, LeaveCause::kCannotTakePart, "NaN");
  Stop();
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              Contains("failed: worker 1 left: NaN; 1 of 2 workers are left, "
                       "and a step needs 2"));
}

TEST_F(JobDriverDeathsTest, FailureAfterItsGradientCountsBeforeAStop) {
  Open();
  Leave(1, LeaveCause::kCannotTakePart, "NaN");
  Stop();
  EXPECT_THAT(Step(), Contains("failed: worker 1 left: NaN; 1 of 2 workers are "
                               "left, and a step needs 2"));
}

TEST_F(JobDriverDeathsTest, BackupOfAWorkerThatFailedKeepsTheJobGoing) {
  workers = 3;
  Open();
  Leave(1, LeaveCause::kCannotTakePart, "NaN");
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("expire 1 of 1 on 0"));
}

TEST_F(JobDriverDeathsTest, JobWhoseInputHasEndedIsDone) {
  Open();
  Leave(1, LeaveCause::kEndOfInput);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  Expired(1, 1);
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("close settings", "recover 0"));
  EXPECT_THAT(said, Contains("the input ended at step 0"));
  // A commit was under way.
  EXPECT_THAT(Recovered(1), Contains("finishing"));
  EXPECT_THAT(Closed(), Contains("done: the input ended"));
  EXPECT_EQ(driver->step(), 1);
}

// The steps that are made again need data, which the workers have again.
TEST_F(JobDriverDeathsTest, JobThatGoesBackAfterTheEndOfInputIsNotDone) {
  Open(2);
  Leave(1, LeaveCause::kEndOfInput);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  Expired(1, 1);
  Pass(absl::Milliseconds(100));
  EXPECT_EQ(driver->EndedInput(), (std::vector<int>{1}));

  RecoveryPlan plan;
  plan.action = RecoveryPlan::Action::kGoBack;
  plan.step = 1;
  JobActions out;
  driver->OnStartFrom(plan, /*first=*/false, /*latest=*/2, out);
  EXPECT_THAT(driver->EndedInput(), IsEmpty());
}

TEST_F(JobDriverDeathsTest, StepsThatAreLostAtTheEndOfInputAreMadeAgain) {
  job.train_steps = 3;
  Open(2);
  Leave(1, LeaveCause::kEndOfInput);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  Expired(1, 1);
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("close settings", "recover 2"));

  RecoveryPlan plan;
  plan.action = RecoveryPlan::Action::kGoBack;
  plan.step = 1;
  JobActions out;
  driver->OnStartFrom(plan, /*first=*/false, /*latest=*/1, out);
  EXPECT_THAT(
      Recovered(1, 1, RecoveryPlan::Action::kGoBack),
      ElementsAre("redone: committed steps 2 to 2", "at 1", "lost: 1 0 1",
                  "training", "open settings", "take 0 at 1", "take 1 at 1"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), IsEmpty());
  EXPECT_THAT(Step(), ElementsAre("at 2", "take 0 at 2", "take 1 at 2"));
  EXPECT_THAT(Step(),
              ElementsAre("at 3", "tell of commit 3 #1", "close settings",
                          "finishing", "close tokens"));
  EXPECT_THAT(Closed(), Contains("done: train_steps reached"));
}

TEST_F(JobDriverDeathsTest, InputOfABackupMayEnd) {
  workers = 3;
  Open();
  Leave(1, LeaveCause::kEndOfInput);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  Expired(1, 1);
  EXPECT_THAT(Pass(absl::Seconds(1)), IsEmpty());
}

TEST_F(JobDriverDeathsTest, RestartedChiefKnowsWhoseInputHasEnded) {
  workers = 3;
  Open();
  ServerReport report;
  report.workers = {{.worker = 0, .input_ended = true}, {1, 5}};
  driver->OnFound({report});
  EXPECT_EQ(driver->EndedInput(), (std::vector<int>{0}));

  Leave(1, LeaveCause::kEndOfInput);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  Expired(1, 1);
  Pass(absl::Milliseconds(100));

  // Worker 0 has registered with this chief, so that it may have data.
  EXPECT_THAT(said, Not(Contains("the input ended at step 0")));
  Kill({TaskType::kWorker, 0});
  Pass(absl::Milliseconds(200));
  EXPECT_THAT(said, Contains("the input ended at step 0"));
}

TEST_F(JobDriverDeathsTest, EvaluatorThatDiesCostsNothing) {
  Open();
  Join(TaskType::kEvaluator, 0);
  EXPECT_THAT(Kill({TaskType::kEvaluator, 0}),
              ElementsAre("evaluator 0 died with nothing"));
}

TEST_F(JobDriverDeathsTest, OwnSilenceIsNotTheMembers) {
  Open();
  now += 2 * job.lease;
  EXPECT_THAT(Tick(), IsEmpty());
  EXPECT_TRUE(members->NotAlive(TaskType::kPs).empty());
}

TEST_F(JobDriverDeathsTest, WorkerThatHoldsUpAStepIsReplaced) {
  workers = 3;
  Open();
  TakeResult answer;
  answer.attempt = 1;
  answer.announced_workers = {0, 1};
  answer.open_parts = 1;
  answer.pushed = {{0, 1}};
  Waiting(0, answer);
  EXPECT_THAT(Pass(job.stall_timeout), ElementsAre("replace 1 on 0 #1"));
  EXPECT_THAT(On(ReplaceAnswered{round, 0, ShardCalls::Replaced{2, 0, 2}}),
              ElementsAre("replace 1 on 1 #2"));
  EXPECT_THAT(On(ReplaceAnswered{round, 1, ShardCalls::Replaced{2, 0, 2}}),
              IsEmpty());
  EXPECT_THAT(said, Contains("worker 1 holds up step 1 (no gradient of it came "
                             "for 2s); worker 2 has its place"));
}

TEST_F(JobDriverDeathsTest,
       WorkerWithoutAWaitingBackupIsAskedAboutOnceASecond) {
  workers = 3;
  Open();
  TakeResult answer;
  answer.attempt = 1;
  answer.announced_workers = {0, 1};
  answer.open_parts = 1;
  answer.pushed = {{0, 1}};
  Waiting(0, answer);
  Pass(job.stall_timeout);
  EXPECT_THAT(
      On(ReplaceAnswered{round, 0, ShardCalls::Replaced{std::nullopt, 0, 1}}),
      IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(900)), IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("replace 1 on 0 #1"));
}

TEST_F(JobDriverDeathsTest, NoWorkerIsReplacedWithoutBackups) {
  Open();
  TakeResult answer;
  answer.attempt = 1;
  answer.announced_workers = {0, 1};
  answer.open_parts = 1;
  Waiting(0, answer);
  EXPECT_THAT(Pass(5 * job.stall_timeout), IsEmpty());
}

// The worker that gives the first values dies: the round waits for them, and so
// for its successor, which must not wait for the round.
TEST_F(JobDriverDeathsTest, WorkerThatDiesBeforeServersHaveValuesIsReplaced) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  RecoveryPlan plan;
  plan.action = RecoveryPlan::Action::kStart;
  JobActions actions;
  driver->OnStartFrom(plan, /*first=*/true, -1, actions);
  const TaskId worker{TaskType::kWorker, 1};
  EXPECT_TRUE(absl::IsUnavailable(
      members->Register(worker, 2, now)));  // its predecessor has died
  RoundFailed(absl::UnavailableError("they wait for worker 1"));

  Pass(absl::Milliseconds(100));

  EXPECT_TRUE(members->Register(worker, 2, now).ok());
}

}  // namespace
}  // namespace lockstep::chief
