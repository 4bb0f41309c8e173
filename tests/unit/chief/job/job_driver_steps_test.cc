// How steps are made and what the answers of servers mean.

#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using JobDriverStepsTest = JobDriverTest;

TEST_F(JobDriverStepsTest, StepIsCommittedOnceAllServersArePrepared) {
  Open();
  EXPECT_THAT(Prepared(1), IsEmpty());
  EXPECT_THAT(Prepared(0), ElementsAre("commit 1 #1"));
  EXPECT_THAT(Committed(), ElementsAre("at 1", "take 0 at 1", "take 1 at 1"));
}

TEST_F(JobDriverStepsTest, ServerWithAnOlderAttemptIsAskedAgain) {
  Open();
  Prepared(1, 1);
  EXPECT_THAT(Prepared(0, 2), ElementsAre("take 1 at 0 #2"));
  EXPECT_THAT(Prepared(1, 2), ElementsAre("commit 1 #2"));
}

TEST_F(JobDriverStepsTest, TakeThatEndsEarlyIsMadeAgain) {
  Open();
  TakeResult answer;
  answer.attempt = 3;
  answer.waits_for = "worker 1";
  EXPECT_THAT(Waiting(0, answer), ElementsAre("take 0 at 0 #3"));
}

TEST_F(JobDriverStepsTest, FailedTakeIsRepeatedAfterAPause) {
  Open();
  EXPECT_THAT(TakeFailed(0, absl::UnavailableError("gone")), IsEmpty());
  EXPECT_EQ(driver->next(), now + Backoff::kFirstPause);
  EXPECT_THAT(Pass(Backoff::kFirstPause), ElementsAre("take 0 at 0"));
}

TEST_F(JobDriverStepsTest, FailedCommitIsRepeatedAfterAPause) {
  Open();
  Prepared(0);
  Prepared(1);
  EXPECT_THAT(Committed(1, absl::DeadlineExceededError("no answer")),
              IsEmpty());
  EXPECT_THAT(Pass(Backoff::kFirstPause), ElementsAre("commit 1 #1"));
}

TEST_F(JobDriverStepsTest, RefusedCommitTakesTheStepAgain) {
  Open();
  Prepared(0);
  Prepared(1);
  EXPECT_THAT(Committed(1, absl::FailedPreconditionError("attempt 2")),
              ElementsAre("take 0 at 0 #1", "take 1 at 0 #1"));
  EXPECT_THAT(said, Contains("step 1: attempt 2; taking again"));
}

TEST_F(JobDriverStepsTest, StepThatPsZeroBeginsAnewIsTakenAgainAndCounted) {
  Open();
  TakeResult answer;
  answer.prepared = true;
  answer.attempt = 1;
  answer.announced_workers = {0, 1};
  Waiting(0, answer);
  Prepared(1, 1, {0, 7});
  EXPECT_THAT(Committed(1, absl::OkStatus(), /*redone_attempt=*/2),
              ElementsAre("take 0 at 0 #2", "take 1 at 0 #2", "lost: 0 1 0"));
  EXPECT_THAT(said, Contains(HasSubstr("ps 1 has summed gradients of workers "
                                       "0, 7, but the set is 0, 1")));
}

TEST_F(JobDriverStepsTest, AnswersOfAnEarlierRoundDoNotCount) {
  Open();
  round -= 1;
  EXPECT_THAT(Prepared(0), IsEmpty());
  EXPECT_THAT(TakeFailed(0, absl::AbortedError("epoch 2")), IsEmpty());
  round += 1;
  Prepared(0);
  EXPECT_THAT(Prepared(1), ElementsAre("commit 1 #1"));
}

TEST_F(JobDriverStepsTest, AnswersOfAnEarlierStepDoNotCount) {
  Open();
  Step();
  EXPECT_THAT(On(TakeAnswered{round, 0, 0, absl::OkStatus(), {true, 1}}),
              IsEmpty());
}

TEST_F(JobDriverStepsTest, NewerChiefEndsThisOneInSilence) {
  Open();
  EXPECT_THAT(TakeFailed(1, absl::AbortedError("epoch 9")),
              ElementsAre("close settings",
                          "finish UNAVAILABLE: a newer chief has "
                          "taken over: epoch 9"));
  EXPECT_THAT(Pass(absl::Seconds(20)), IsEmpty());
}

TEST_F(JobDriverStepsTest, NewerChiefThatRefusesACommitEndsThisOne) {
  Open();
  Prepared(0);
  Prepared(1);
  EXPECT_THAT(Committed(1, absl::AbortedError("epoch 9")),
              Contains(HasSubstr("finish UNAVAILABLE: a newer chief")));
}

TEST_F(JobDriverStepsTest, ServerThatRefusesForGoodFailsTheJobWithItsName) {
  Open();
  EXPECT_THAT(TakeFailed(1, absl::InternalError("NaN")),
              Contains("failed: ps 1: NaN"));
}

TEST_F(JobDriverStepsTest, CommitThatIsRefusedForGoodFailsTheJob) {
  Open();
  Prepared(0);
  Prepared(1);
  EXPECT_THAT(Committed(1, absl::DataLossError("no memory")),
              Contains("failed: ps 0: no memory"));
}

TEST_F(JobDriverStepsTest, ServerThatIsAloneIsGrantedSteps) {
  servers = 1;
  EXPECT_THAT(Open(), Contains("take 0 at 0 until 2"));
}

TEST_F(JobDriverStepsTest, ServerThatIsAloneTellsWhatItHasCommitted) {
  servers = 1;
  Open();
  now += absl::Seconds(1);
  TakeResult answer;
  answer.prepared = true;
  answer.committed_step = 2;
  EXPECT_THAT(Waiting(0, answer), ElementsAre("at 2", "take 0 at 2 until 4"));
}

TEST_F(JobDriverStepsTest, GrantsEndAtTheLastStep) {
  servers = 1;
  job.train_steps = 1;
  EXPECT_THAT(Open(), Contains("take 0 at 0 until 1"));
}

TEST_F(JobDriverStepsTest, GrantsEndWhereACheckpointIsDue) {
  servers = 1;
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 1;
  EXPECT_THAT(Open(), Contains("take 0 at 0 until 1"));
}

TEST_F(JobDriverStepsTest, CompatibleModeGrantsNothing) {
  servers = 1;
  job.mode = SyncMode::kCompatible;
  EXPECT_THAT(Open(), Contains("take 0 at 0"));
}

TEST_F(JobDriverStepsTest, ServersOfManyAreGrantedNothing) {
  EXPECT_THAT(Open(), Contains("take 1 at 0"));
}

TEST_F(JobDriverStepsTest, CheckpointIsCopiedBeforeTheNextStepBegins) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 2;
  Open();
  Step();
  EXPECT_THAT(Step(), ElementsAre("at 2", "copy 2"));
  EXPECT_THAT(Copied(2), ElementsAre("take 0 at 2", "take 1 at 2"));
  EXPECT_THAT(Written(2), ElementsAre("saved 2"));
}

TEST_F(JobDriverStepsTest, CopyThatFailsDoesNotHoldUpTheStep) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  EXPECT_THAT(Copied(1, absl::UnavailableError("ps 1: gone")),
              ElementsAre("unsaved: step 1: ps 1: gone",
                          "notice: the checkpoint of step 1 could not be "
                          "written: ps 1: gone",
                          "take 0 at 1", "take 1 at 1"));
}

TEST_F(JobDriverStepsTest, CheckpointThatIsDueWhileOneIsWrittenIsLeftOut) {
  job.checkpoint.directory = "/checkpoints";
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  EXPECT_THAT(Step(), ElementsAre("at 2", "take 0 at 2", "take 1 at 2"));
  EXPECT_THAT(
      said, Contains("step 2: no checkpoint, the one before is being written"));
}

TEST_F(JobDriverStepsTest, WantedCheckpointIsWrittenAtTheNextBoundary) {
  job.checkpoint.directory = "/checkpoints";
  Open();
  EXPECT_THAT(On(CheckpointWanted{}), IsEmpty());
  EXPECT_THAT(Step(), ElementsAre("at 1", "copy 1"));
}

TEST_F(JobDriverStepsTest, WaitsNameWorkersThatHaveNotPushed) {
  Open();
  TakeResult answer;
  answer.attempt = 1;
  answer.waits_for = "gradients";
  answer.announced_workers = {0};
  Waiting(0, answer);
  Pass(absl::Milliseconds(1100));
  EXPECT_THAT(waits, ElementsAre("step 1 on ps 0: gradients; worker 1",
                                 "step 1 on ps 1: its update; worker 1"));
  EXPECT_THAT(said, Not(Contains(HasSubstr("has waited"))));
  Pass(absl::Seconds(4));
  EXPECT_THAT(said, Contains(HasSubstr("step 1 has waited 5s for gradients")));
}

TEST_F(JobDriverStepsTest, StepThatWaitsTooLongFailsTheJob) {
  Open();
  EXPECT_THAT(Pass(job.max_wait),
              Contains("failed: step 1 waited longer than max_wait (1m) for "
                       "worker 0, worker 1"));
}

TEST_F(JobDriverStepsTest, JobThatFailsForAWaitSavesItsStepFirst) {
  job.checkpoint.directory = "/checkpoints";
  Open();
  EXPECT_THAT(Pass(job.max_wait),
              ElementsAre("close settings", "close tokens"));
  EXPECT_THAT(Closed(), ElementsAre("copy 0"));
  EXPECT_THAT(Copied(0), IsEmpty());
  EXPECT_THAT(Written(0),
              ElementsAre("saved 0", "not all is saved", "close settings",
                          "sum up", HasSubstr("failed: step 1 waited")));
}

TEST_F(JobDriverStepsTest, LastStepEndsTraining) {
  job.train_steps = 1;
  Open();
  EXPECT_THAT(Step(),
              ElementsAre("at 1", "tell of commit 1 #1", "close settings",
                          "finishing", "close tokens"));
}

}  // namespace
}  // namespace lockstep::chief
