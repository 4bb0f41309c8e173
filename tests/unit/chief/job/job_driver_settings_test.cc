// What operators change while a job runs.

#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

class JobDriverSettingsTest : public JobDriverTest {
 protected:
  Actions Want(const RunSettings& settings) {
    Actions actions = On(SettingsWanted{settings});
    const Actions more = Pass(absl::Milliseconds(100));
    actions.insert(actions.end(), more.begin(), more.end());
    return actions;
  }
  RunSettings Changed() const {
    RunSettings settings = driver->settings();
    ++settings.revision;
    return settings;
  }
  RunSettings Paused(bool paused = true) const {
    RunSettings settings = Changed();
    settings.paused = paused;
    return settings;
  }
  RunSettings Slower() const {
    RunSettings settings = Changed();
    settings.learning_rate_scale = 0.5;
    return settings;
  }
};

TEST_F(JobDriverSettingsTest, ChangeBringsTheServersTogetherInMidStep) {
  Open();
  EXPECT_THAT(Want(Slower()), ElementsAre("recover 0"));
  EXPECT_EQ(driver->settings().learning_rate_scale, 0.5);
}

TEST_F(JobDriverSettingsTest, StepBeginsAnewUnderTheNewSettings) {
  Open();
  Step();
  Want(Slower());
  EXPECT_THAT(Recovered(1, -1, RecoveryPlan::Action::kResume, /*redo=*/true),
              ElementsAre("settings 1", "take 0 at 1", "take 1 at 1"));
  EXPECT_THAT(said, Contains(HasSubstr("from step 2 on: learning_rate ")));
  EXPECT_THAT(said, Contains(HasSubstr("(revision 1)")));
}

TEST_F(JobDriverSettingsTest, StepThatWasCommittedMeanwhileIsReported) {
  Open();
  Step();
  Want(Paused());
  EXPECT_THAT(Recovered(2, -1, RecoveryPlan::Action::kResume),
              Contains("at 2"));
}

TEST_F(JobDriverSettingsTest, CompatibleModeEndsTheStepFirst) {
  job.mode = SyncMode::kCompatible;
  Open();
  EXPECT_THAT(Want(Slower()), IsEmpty());
  EXPECT_THAT(Step(), ElementsAre("at 1", "recover 1"));
}

TEST_F(JobDriverSettingsTest, SumsUnderOtherSettingsDoNotCount) {
  Open();
  Want(Slower());
  ServerReport report{true, true, 0, -1, {}, 0};
  EXPECT_TRUE(driver->OnResume({report, report}, /*first=*/false));
}

TEST_F(JobDriverSettingsTest, PauseDoesNotChangeSums) {
  Open();
  Want(Paused());
  ServerReport report{true, true, 0, -1, {}, 0};
  EXPECT_FALSE(driver->OnResume({report, report}, /*first=*/false));
}

TEST_F(JobDriverSettingsTest, PausedJobBeginsNoStep) {
  Open();
  Want(Paused());
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kResume),
              ElementsAre("settings 1"));
  EXPECT_THAT(Pass(2 * job.max_wait), IsEmpty());
  EXPECT_THAT(waits, ElementsAre("the job: an operator to resume it"));
}

TEST_F(JobDriverSettingsTest, ResumedJobBeginsTheStep) {
  Open();
  Want(Paused());
  Recovered(0, -1, RecoveryPlan::Action::kResume);
  EXPECT_THAT(Want(Paused(false)), ElementsAre("recover 0"));
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kResume),
              ElementsAre("settings 2", "take 0 at 0", "take 1 at 0"));
}

TEST_F(JobDriverSettingsTest, PausedJobWritesAWantedCheckpoint) {
  job.checkpoint.directory = "/checkpoints";
  Open();
  Step();
  Want(Paused());
  Recovered(1, -1, RecoveryPlan::Action::kResume);
  On(CheckpointWanted{});
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("copy 1"));
  EXPECT_THAT(Copied(1), IsEmpty());
  EXPECT_THAT(Written(1), ElementsAre("saved 1"));
}

TEST_F(JobDriverSettingsTest, PausedJobStops) {
  Open();
  Want(Paused());
  Recovered(0, -1, RecoveryPlan::Action::kResume);
  Stop(/*hold=*/true);
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(Closed(), Contains("stopped: enough (held)"));
}

TEST_F(JobDriverSettingsTest, PausedJobStillBuriesTheDead) {
  Open();
  Want(Paused());
  Recovered(0, -1, RecoveryPlan::Action::kResume);
  EXPECT_THAT(PassWithout({TaskType::kWorker, 1}, 2 * job.lease),
              ElementsAre("expire 1 of 1 on 0"));
}

TEST_F(JobDriverSettingsTest, PauseIsNoTimeWithoutAServer) {
  Open();
  Want(Paused());
  Recovered(0, -1, RecoveryPlan::Action::kResume);
  for (const uint64_t incarnation : {2U, 3U}) {
    Pass(absl::Minutes(5));
    PassWithout({TaskType::kPs, 1}, job.lease + absl::Milliseconds(100));
    Join(TaskType::kPs, 1, incarnation);
    Pass(absl::Milliseconds(100));
    Recovered(0, -1, RecoveryPlan::Action::kResume);
  }
  EXPECT_GT(stood_still, absl::ZeroDuration());
  EXPECT_LT(stood_still, absl::Seconds(1));
}

TEST_F(JobDriverSettingsTest, ServerThatDiesWhileSettingsChangeIsARecovery) {
  Open();
  Step();
  Step();
  const TaskId ps{TaskType::kPs, 1};
  Want(Slower());
  PassWithout(ps, job.lease);  // in the round
  RoundFailed(absl::UnavailableError("ps 1: gone"));
  PassWithout(ps, absl::Seconds(2));
  Join(TaskType::kPs, 1, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 2"));
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kGoBack),
              IsSupersetOf({"redone: committed steps 1 to 2", "lost: 1 0 2"}));
  EXPECT_THAT(said, Contains(HasSubstr("from step 1 on: learning_rate ")));
  EXPECT_GT(stood_still, absl::Seconds(1));
  EXPECT_LE(stood_still, absl::Seconds(3));
}

TEST_F(JobDriverSettingsTest, ChangeWaitsForACheckpointThatIsWritten) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  EXPECT_THAT(Want(Slower()), IsEmpty());
  EXPECT_THAT(waits,
              ElementsAre("the job: the checkpoint of step 1 to be written"));
  EXPECT_THAT(Written(1), ElementsAre("saved 1"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 1"));
}

TEST_F(JobDriverSettingsTest, LongCheckpointIsNoWaitForServers) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  Want(Slower());
  EXPECT_THAT(Pass(2 * job.max_wait), IsEmpty());
  Written(1);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 1"));
}

TEST_F(JobDriverSettingsTest, StopDoesNotWaitForAVolumeThatHangs) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  PassWithout({TaskType::kPs, 1}, job.lease + absl::Milliseconds(100));
  said.clear();
  EXPECT_THAT(PassWithout({TaskType::kPs, 1}, job.max_wait), IsEmpty());
  EXPECT_THAT(said, Contains(HasSubstr("for the checkpoint of step 1 to be")));

  Stop();
  const Actions end = PassWithout({TaskType::kPs, 1}, absl::Seconds(1));
  EXPECT_THAT(end, Contains("close settings"));
  EXPECT_THAT(said, Contains(HasSubstr("takes longer than max_wait")));
}

TEST_F(JobDriverSettingsTest, PausedJobDoesNotWarnOfItsOwnCheckpoint) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 2;
  Open();
  Step();
  On(SettingsWanted{Paused()});
  Step();
  EXPECT_THAT(Recovered(2, -1, RecoveryPlan::Action::kResume),
              Contains("copy 2"));
  Copied(2);
  said.clear();

  EXPECT_THAT(Pass(absl::Seconds(1)), IsEmpty());

  EXPECT_THAT(said, IsEmpty());
  EXPECT_THAT(Written(2), Contains("saved 2"));
}

TEST_F(JobDriverSettingsTest, ChangeWhileAStepIsCopiedBeginsThatStepOnce) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 1;
  Open();
  EXPECT_THAT(Step(), ElementsAre("at 1", "copy 1"));
  Want(Slower());
  EXPECT_THAT(Copied(1), IsEmpty());
  Written(1);
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(Recovered(1, -1, RecoveryPlan::Action::kResume),
              ElementsAre("settings 1", "take 0 at 1", "take 1 at 1"));
}

TEST_F(JobDriverSettingsTest, ChangeThatComesWithTheLastStepIsLeftOut) {
  job.train_steps = 1;
  Open();
  On(SettingsWanted{Slower()});
  EXPECT_THAT(Step(),
              ElementsAre("at 1", "tell of commit 1 #1", "close settings",
                          "finishing", "close tokens"));
}

TEST_F(JobDriverSettingsTest, NothingIsWantedBeforeTheBeginning) {
  Make();
  JoinAll();
  RunSettings settings = driver->settings();
  settings.revision = 7;
  On(SettingsWanted{settings});
  EXPECT_FALSE(driver->TakesSettings());
  EXPECT_EQ(driver->wanted_settings().revision, 0);
}

TEST_F(JobDriverSettingsTest, ElasticWorkersRegisterAnewWhenTheyChange) {
  job.elastic_workers = true;
  Open();
  RunSettings wanted = Changed();
  wanted.workers = {0, 1, 2};
  EXPECT_THAT(Want(wanted), ElementsAre("recover 0"));
  EXPECT_EQ(driver->num_workers(), 3);
  EXPECT_EQ(members->Get({TaskType::kWorker, 0}).state,
            MembershipTable::State::kDead);
  Recovered(0, -1, RecoveryPlan::Action::kResume, /*redo=*/true);
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("expire 0 of 1 on 0", "expire 1 of 1 on 0"));
}

TEST_F(JobDriverSettingsTest, ChiefThatIsStartedAgainKnowsWorkersThatJoined) {
  job.elastic_workers = true;
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  const TaskId joined{TaskType::kWorker, 7};
  EXPECT_EQ(members->TakeOver(joined, 1, now), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(members->Heartbeat(joined, 1, nullptr, now)));
  ServerReport report{true, true, 3, -1, {}, 0};
  report.settings = {.revision = 1, .replicas_to_aggregate = 3};
  report.settings.workers = {0, 1, 7};
  driver->OnResume({report, report}, /*first=*/true);
  EXPECT_EQ(members->TakeOver(joined, 1, now), absl::OkStatus());
  EXPECT_EQ(members->Heartbeat(joined, 1, nullptr, now), absl::OkStatus());
}

TEST_F(JobDriverSettingsTest, ElasticWorkerThatLeavesIsTakenOut) {
  job.elastic_workers = true;
  Open();
  Leave(1, LeaveCause::kStopped);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  EXPECT_THAT(Expired(1, 1), ElementsAre("take out 1"));
}

TEST_F(JobDriverSettingsTest, ElasticWorkerThatLeavesBeforeTheBeginningIsOut) {
  job.elastic_workers = true;
  Make();
  for (int worker : {0, 1}) Join(TaskType::kWorker, worker);
  On(ModelDescribed{});
  Started();
  Leave(1, LeaveCause::kStopped);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), IsEmpty());
  for (int server : {0, 1}) Join(TaskType::kPs, server);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover"));
  EXPECT_THAT(Recovered(0),
              ElementsAre("trains at 0", "open settings", "take out 1",
                          "take 0 at 0", "take 1 at 0"));
}

TEST_F(JobDriverSettingsTest, ElasticWorkerThatLeavesAtTheEndIsOutOfLostSteps) {
  job.elastic_workers = true;
  job.train_steps = 1;
  Open();
  Step();
  Leave(1, LeaveCause::kStopped);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  // Settings are closed, so this one has no effect.
  EXPECT_THAT(Expired(1, 1), ElementsAre("take out 1"));
  Closed(absl::UnavailableError("ps 0: gone"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 1"));
  EXPECT_THAT(Recovered(0, -1, RecoveryPlan::Action::kGoBack),
              IsSupersetOf({"open settings", "take out 1"}));
}

TEST_F(JobDriverSettingsTest, ElasticWorkerWhoseInputEndedIsNotTakenOut) {
  job.elastic_workers = true;
  job.data.epochs = 1;
  Make();
  for (int worker : {0, 1}) Join(TaskType::kWorker, worker);
  On(ModelDescribed{});
  Started();
  Leave(1, LeaveCause::kEndOfInput);
  for (int server : {0, 1}) Join(TaskType::kPs, server);
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(Recovered(0), Not(Contains("take out 1")));
}

// For example one that was started where the data are missing.
TEST_F(JobDriverSettingsTest, ElasticWorkerThatCannotTakePartIsTakenOut) {
  job.elastic_workers = true;
  Open();
  Leave(1, LeaveCause::kCannotTakePart, "no data");
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("expire 1 of 1 on 0"));
  Expired(0, 1);
  EXPECT_THAT(Expired(1, 1), ElementsAre("take out 1"));
}

TEST_F(JobDriverSettingsTest, ElasticJobFailsWithItsLastWorker) {
  job.elastic_workers = true;
  workers = 1;
  Open();
  Leave(0, LeaveCause::kCannotTakePart, "no data");
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              Contains("failed: worker 0 left: no data; 0 of 1 workers are "
                       "left, and a step needs 1"));
}

// Only an operator ends the place of a worker that may come back.
TEST_F(JobDriverSettingsTest, ElasticWorkerThatDiesIsTakenOutIfAsked) {
  job.elastic_workers = true;
  Open();
  PassWithout({TaskType::kWorker, 1}, job.lease + absl::Milliseconds(100));
  Expired(0, 1);
  EXPECT_THAT(Expired(1, 1),
              ElementsAre("worker 1 died with nothing", "take out 1 if asked"));
}

TEST_F(JobDriverSettingsTest, ElasticWorkerThatIsSentBackIsTakenOutIfAsked) {
  job.elastic_workers = true;
  Open();
  members->ExpireAll(TaskType::kWorker, "the job goes back", now);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  EXPECT_THAT(Expired(1, 1), ElementsAre("take out 1 if asked"));
}

TEST_F(JobDriverSettingsTest, FixedWorkerThatLeavesKeepsItsPlace) {
  Open();
  Leave(1, LeaveCause::kStopped);
  Pass(absl::Milliseconds(100));
  Expired(0, 1);
  EXPECT_THAT(Expired(1, 1), IsEmpty());
}

TEST_F(JobDriverSettingsTest, RoundForSettingsThatFailsForGoodFailsTheJob) {
  Open();
  Want(Slower());
  EXPECT_THAT(RoundFailed(absl::InternalError("no such rate")),
              Contains("failed: no such rate"));
}

TEST_F(JobDriverSettingsTest, StopBeforeTheNextGrantKeepsTheServerAlone) {
  servers = 1;
  Open();
  Stop();
  now += absl::Seconds(1);
  TakeResult answer;
  answer.prepared = true;
  answer.committed_step = 1;
  // It was granted two, and stops only there.
  EXPECT_THAT(Waiting(0, answer), ElementsAre("at 1", "take 0 at 1 until 2"));
  now += absl::Seconds(1);
  answer.committed_step = 2;
  EXPECT_THAT(Waiting(0, answer), ElementsAre("at 2", "close settings",
                                              "finishing", "close tokens"));
}

}  // namespace
}  // namespace lockstep::chief
