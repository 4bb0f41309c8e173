// How a job begins: which members it waits for, and its first actions.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using JobDriverStartTest = JobDriverTest;

TEST_F(JobDriverStartTest, RoundBeginsWhenAllServersAndAModelAreThere) {
  Make();
  EXPECT_THAT(Started(), IsEmpty());
  Join(TaskType::kPs, 0);
  EXPECT_THAT(Pass(absl::Seconds(1)), IsEmpty());
  Join(TaskType::kPs, 1);
  EXPECT_THAT(Pass(absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(On(ModelDescribed{}), ElementsAre("recover"));
}

TEST_F(JobDriverStartTest, WaitNamesTheMissingMembers) {
  Make();
  Join(TaskType::kPs, 1);
  Started();
  EXPECT_THAT(waits, ElementsAre("chief: ps 0, a worker that registers and "
                                 "describes the model"));
  EXPECT_THAT(said, IsEmpty());
  Pass(absl::Seconds(6));
  EXPECT_THAT(
      said, Contains(AllOf(HasSubstr("the chief has waited 5"),
                           HasSubstr("s for ps 0, a worker that registers"))));
  Join(TaskType::kWorker, 1);
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(waits,
              ElementsAre("chief: ps 0, a worker that describes the model"));
}

TEST_F(JobDriverStartTest, FirstStepBeginsOnceTheServersAreOpen) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  EXPECT_THAT(Started(), ElementsAre("recover"));
  EXPECT_THAT(Recovered(0), ElementsAre("trains at 0", "open settings",
                                        "take 0 at 0", "take 1 at 0"));
}

TEST_F(JobDriverStartTest, FailureToPrepareEndsTheJob) {
  Make();
  EXPECT_THAT(
      Started(absl::DataLossError("--from 7: damaged")),
      ElementsAre("close settings", "sum up", "failed: --from 7: damaged"));
}

TEST_F(JobDriverStartTest, StopWhileMembersAreMissingEndsTheJob) {
  Make();
  Started();
  Stop();
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("close settings", "sum up", "stopped: enough"));
}

TEST_F(JobDriverStartTest, WorkerThatCannotTakePartEndsTheJobBeforeItBegins) {
  Make();
  Join(TaskType::kWorker, 0);
  Started();
  Leave(0, LeaveCause::kCannotTakePart, "no data");
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              Contains("failed: worker 0 left: no data"));
}

TEST_F(JobDriverStartTest, FailureOfAWorkerCountsBeforeAStop) {
  Make();
  Join(TaskType::kWorker, 0);
  Started();
  Leave(0, LeaveCause::kCannotTakePart, "no data");
  Stop();
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              Contains("failed: worker 0 left: no data"));
}

TEST_F(JobDriverStartTest, EvaluatorThatCannotTakePartDoesNotEndTheJob) {
  Make();
  Join(TaskType::kEvaluator, 0);
  Started();
  ASSERT_EQ(
      members->Leave({TaskType::kEvaluator, 0}, 1, LeaveCause::kCannotTakePart,
                     "no data", nullptr, now),
      absl::OkStatus());
  EXPECT_THAT(Pass(absl::Seconds(1)), IsEmpty());
}

TEST_F(JobDriverStartTest, WorkerThatStopsBeforeTheBeginningMayComeBack) {
  Make();
  Join(TaskType::kWorker, 0);
  Started();
  Leave(0, LeaveCause::kStopped);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), IsEmpty());
  Join(TaskType::kWorker, 0, 2);
}

TEST_F(JobDriverStartTest, JobThatWasDoneBeforeIsLookedForAfterAWhile) {
  Make();
  Started();
  EXPECT_THAT(Pass(Gathering::kAfterTheEnd), IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("look for the end"));
  // A look lists a directory, so that ticks do not each look.
  EXPECT_THAT(Pass(Gathering::kLookEvery), IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("look for the end"));
}

TEST_F(JobDriverStartTest, MembersOutliveASuspensionOfTheChief) {
  Make();
  Join(TaskType::kWorker, 0);
  Started();

  now += 2 * job.lease;
  EXPECT_THAT(Tick(), IsEmpty());
  EXPECT_EQ(members->Get({TaskType::kWorker, 0}).state,
            MembershipTable::State::kAlive);

  PassWithout({TaskType::kWorker, 0}, job.lease + absl::Milliseconds(100));
  EXPECT_EQ(members->Get({TaskType::kWorker, 0}).state,
            MembershipTable::State::kDead);
}

TEST_F(JobDriverStartTest, JobThatWasDoneBeforeIsDone) {
  job.checkpoint.directory = "/checkpoints";
  Make();
  Started();
  Pass(Gathering::kAfterTheEnd + absl::Milliseconds(100));
  EXPECT_THAT(
      On(EndFound{100}),
      ElementsAre("at 100", "saved 100",
                  "notice: nothing to do: /checkpoints has step 100 of 100; "
                  "to train again, name another checkpoint.directory, raise "
                  "train_steps, or give --fresh",
                  "close settings", "sum up", "done: it was done before"));
}

TEST_F(JobDriverStartTest, JobThatIsToBeginAnewLooksForNoEnd) {
  options.beginning.step = Beginning::kFresh;
  Make();
  Started();
  EXPECT_THAT(Pass(2 * Gathering::kAfterTheEnd), IsEmpty());
}

TEST_F(JobDriverStartTest, CheckpointBeyondTheLastStepSaysHowToGoOn) {
  job.checkpoint.directory = "/checkpoints";
  EXPECT_THAT(Open(120),
              Contains(HasSubstr("has step 120, and train_steps is 100; raise "
                                 "train_steps")));
}

TEST_F(JobDriverStartTest, ServersThatHoldTheLastStepOnlyNeedTheEnd) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  EXPECT_THAT(Recovered(100, -1, RecoveryPlan::Action::kResume),
              ElementsAre("chief died with nothing: the servers hold step 100",
                          "trains at 100", "open settings", "close settings",
                          "finishing", "close tokens"));
}

TEST_F(JobDriverStartTest, StandstillWithoutAChiefCountsFromTheNextOnesStart) {
  for (const int number : {2, 1}) {
    servers = number;
    round = 0;
    Make();
    const absl::Time start = now;
    JoinAll();
    On(ModelDescribed{});
    Started();
    Pass(absl::Milliseconds(700));
    Recovered(7, -1, RecoveryPlan::Action::kResume);
    // A server alone may have gone on without a chief.
    EXPECT_EQ(died_at, number == 1 ? now : start);
  }
}

TEST_F(JobDriverStartTest, CheckpointOfAnEarlierChiefIsAsOldAsItIs) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  RoundOutcome outcome;
  outcome.plan.action = RecoveryPlan::Action::kResume;
  outcome.step = 7;
  outcome.checkpoint_step = 5;
  outcome.epoch = 1;
  outcome.servers = driver->Servers();
  outcome.saved_at = now - absl::Minutes(5);
  EXPECT_THAT(On(RecoveryDone{outcome}), Contains("saved 5"));
  EXPECT_EQ(saved_at, outcome.saved_at);
}

// The chief before may have died while it wrote the checkpoint of step 4.
TEST_F(JobDriverStartTest, CheckpointThatAnEarlierChiefOwedIsMadeUpFor) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 4;
  for (const auto& [saved, owed] :
       {std::pair{-1, true}, {3, true}, {4, false}, {5, false}}) {
    Make();
    JoinAll();
    On(ModelDescribed{});
    Started();
    Actions actions = Recovered(7, saved, RecoveryPlan::Action::kResume);
    for (const std::string& action : Step()) actions.push_back(action);
    EXPECT_EQ(std::count_if(actions.begin(), actions.end(),
                            [](const std::string& action) {
                              return absl::StartsWith(action, "copy ");
                            }),
              owed ? 1 : 0)
        << saved << ": " << absl::StrJoin(actions, ", ");
  }
}

TEST_F(JobDriverStartTest, EndThatIsFoundIsAsOldAsItIs) {
  job.checkpoint.directory = "/checkpoints";
  Make();
  Started();
  Pass(Gathering::kAfterTheEnd + absl::Milliseconds(100));
  On(EndFound{100, now - absl::Minutes(5)});
  EXPECT_EQ(saved_at, now - absl::Minutes(5));
}

TEST_F(JobDriverStartTest, RoundThatFailsForAPassingReasonIsRepeated) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  EXPECT_THAT(RoundFailed(absl::UnavailableError("ps 1: no answer")),
              IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover"));
  EXPECT_THAT(waits, ElementsAre("the job: the servers (ps 1: no answer)"));
}

TEST_F(JobDriverStartTest, RoundThatFailsForGoodEndsTheJob) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  EXPECT_THAT(
      RoundFailed(absl::InvalidArgumentError("no such optimizer")),
      ElementsAre("close settings", "sum up", "failed: no such optimizer"));
}

TEST_F(JobDriverStartTest, NewerChiefInTheFirstRoundEndsThisOneInSilence) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  EXPECT_THAT(RoundFailed(absl::AbortedError("epoch 7")),
              ElementsAre("close settings",
                          "finish UNAVAILABLE: a newer chief has "
                          "taken over: epoch 7"));
}

TEST_F(JobDriverStartTest, StopEndsARoundOfServersThatWork) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  JobActions actions;
  EXPECT_EQ(
      driver->OnWorking("ps 0 to create its variables, 40 %", now, actions),
      absl::OkStatus());
  Stop();
  EXPECT_TRUE(absl::IsCancelled(driver->OnWorking("ps 0", now, actions)));
  EXPECT_THAT(RoundFailed(absl::CancelledError("enough")),
              Contains("stopped: enough"));
}

TEST_F(JobDriverStartTest, RestoredSettingsAreInEffect) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  JobActions actions;
  driver->OnRestore({{"learning_rate_scale", 0.5}, {"paused", 1}}, actions);
  EXPECT_THAT(Recovered(0),
              ElementsAre("settings 1", "trains at 0", "open settings"));
}

TEST_F(JobDriverStartTest, SettingsOfServersCountForAChiefThatIsStartedAgain) {
  Make();
  ServerReport first{true, true, 3, -1, {}, 0};
  first.settings = {.revision = 4, .replicas_to_aggregate = 1};
  ServerReport second{true, true, 3, -1, {}, 0};
  EXPECT_TRUE(driver->OnResume({first, second}, /*first=*/true));
  EXPECT_EQ(driver->settings().revision, 4);
  second.settings = first.settings;
  EXPECT_FALSE(driver->OnResume({first, second}, /*first=*/false));
}

TEST_F(JobDriverStartTest, ChiefThatTakesOverAnotherRateThanTheFilesSaysSo) {
  job.learning_rate.base = 0.2;
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  ServerReport report{true, true, 3, -1, {}, 0};
  report.settings = {.revision = 4, .learning_rate_scale = 0.5};
  driver->OnResume({report, report}, /*first=*/true);
  Recovered(3, -1, RecoveryPlan::Action::kResume);
  EXPECT_THAT(said, Contains(HasSubstr("learning_rate is 0.1,")));
}

TEST_F(JobDriverStartTest, ChiefThatTakesAPausedJobOverSaysSo) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  ServerReport report{true, true, 3, -1, {}, 0};
  report.settings = {.revision = 4, .replicas_to_aggregate = 1, .paused = true};
  driver->OnResume({report, report}, /*first=*/true);
  Recovered(3, -1, RecoveryPlan::Action::kResume);
  EXPECT_THAT(said,
              Contains("the servers hold step 3 of this job: it is paused, "
                       "and `lockstep resume` lets it train"));
}

TEST_F(JobDriverStartTest, FirstRoundThatGoesBackWaitsForMembersToRegister) {
  Make();
  RecoveryPlan plan;
  plan.action = RecoveryPlan::Action::kGoBack;
  plan.step = 4;
  plan.reason = "ps 1 has lost its state";
  plan.repeated_steps = 3;
  JobActions actions;
  EXPECT_EQ(driver->OnStartFrom(plan, /*first=*/true, 4, actions),
            now + JobDriver::kTakeOver + job.heartbeat_interval);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<Say>(actions[0]).text,
            "ps 1 has lost its state: all servers go back to the checkpoint of "
            "step 4; repeated: 3 steps");
}

}  // namespace
}  // namespace lockstep::chief
