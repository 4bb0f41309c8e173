// How a job ends: its last checkpoint, its score, and that all learn of it.

#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobDriverEndTest : public JobDriverTest {
 protected:
  JobDriverEndTest() {
    job.train_steps = 1;
    job.checkpoint.directory = "/checkpoints";
  }
  // All members leave.
  void LeaveAll() {
    for (const MembershipTable::Member& member : members->Members()) {
      if (member.state != MembershipTable::State::kAlive) continue;
      ASSERT_EQ(members->Leave(member.task, member.incarnation,
                               LeaveCause::kDone, "done", nullptr, now),
                absl::OkStatus());
    }
  }
  // To the attempt to write the last checkpoint.
  void Train() {
    Open();
    Step();
  }
  // To the wait for the score of the last checkpoint.
  void TrainAndSaveForTheEvaluator() {
    options.has_evaluator = true;
    Open();
    Join(TaskType::kEvaluator, 0);
    Step();
    Closed();
    Copied(1);
    Written(1);
  }
};

TEST_F(JobDriverEndTest, LastStepIsSavedAndTold) {
  Train();
  EXPECT_THAT(Closed(), ElementsAre("copy 1"));
  EXPECT_THAT(Copied(1), IsEmpty());
  EXPECT_THAT(Written(1),
              ElementsAre("saved 1", "all is saved", "close settings", "sum up",
                          "done: train_steps reached"));
  EXPECT_THAT(said, Contains("done at step 1"));
}

TEST_F(JobDriverEndTest, JobIsOverOnlyOnceItsLastCheckpointIsWritten) {
  Train();
  Closed();
  Copied(1);
  EXPECT_FALSE(over);  // the last step may be lost, and then be made again
  Written(1);
  EXPECT_TRUE(over);
}

TEST_F(JobDriverEndTest, JobWithoutCheckpointsOnlyClosesItsTokens) {
  job.checkpoint.directory.clear();
  Train();
  EXPECT_THAT(Closed(), ElementsAre("not all is saved", "close settings",
                                    "sum up", "done: train_steps reached"));
}

TEST_F(JobDriverEndTest, ChiefLingersOnceAllHaveLeft) {
  job.checkpoint.directory.clear();
  Train();
  Closed();
  EXPECT_THAT(Pass(absl::Seconds(1)), IsEmpty());
  LeaveAll();
  EXPECT_THAT(Pass(Farewell::kLinger), IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("finish OK"));
}

TEST_F(JobDriverEndTest, MembersThatDoNotLeaveAreNotWaitedForWithoutEnd) {
  job.checkpoint.directory.clear();
  Train();
  Closed();
  EXPECT_THAT(Pass(Farewell::kLeaveGrace), IsEmpty());
  EXPECT_THAT(Pass(Farewell::kLinger + absl::Milliseconds(100)),
              ElementsAre("finish OK"));
}

TEST_F(JobDriverEndTest, CheckpointBeforeTheLastOneIsAwaited) {
  job.train_steps = 2;
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  EXPECT_THAT(Step(),
              ElementsAre("at 2", "tell of commit 2 #1", "close settings",
                          "finishing", "close tokens"));
  EXPECT_THAT(Closed(), IsEmpty());
  EXPECT_THAT(Written(1), ElementsAre("saved 1", "copy 2"));
}

TEST_F(JobDriverEndTest, LastStepThatIsSavedIsOnlyChecked) {
  EXPECT_THAT(Open(1), Contains("close tokens"));
  EXPECT_THAT(Closed(), ElementsAre("check 1"));
  EXPECT_THAT(On(SavedChecked{1, true}), Contains("done: it was done before"));
}

TEST_F(JobDriverEndTest, LastCheckpointThatIsDamagedIsWrittenAnew) {
  Open(1);
  Closed();
  EXPECT_THAT(On(SavedChecked{1, false}), ElementsAre("copy 1"));
}

TEST_F(JobDriverEndTest, LastCheckpointThatIsBeingWrittenIsWaitedForInWords) {
  Train();
  Closed();
  Copied(1);
  EXPECT_THAT(Pass(absl::Seconds(11)), IsEmpty());
  EXPECT_THAT(waits,
              ElementsAre("the end: the checkpoint of step 1 to be written"));
  EXPECT_THAT(
      said, Contains(HasSubstr("for the checkpoint of step 1 to be written")));
  Written(1);
  EXPECT_THAT(waits, IsEmpty());
}

TEST_F(JobDriverEndTest, WorkerThatDiesDuringTheLastCheckpointMayComeBack) {
  Train();
  Closed();
  Copied(1);
  const TaskId worker{TaskType::kWorker, 1};
  EXPECT_THAT(PassWithout(worker, job.lease + absl::Milliseconds(100)),
              ElementsAre("expire 1 of 1 on 0"));
  Expired(0, 1);
  EXPECT_THAT(Expired(1, 1), ElementsAre("worker 1 died with nothing"));
  EXPECT_EQ(members->Register(worker, 2, now), absl::OkStatus());
}

TEST_F(JobDriverEndTest, OwnSilenceDuringTheLastCheckpointIsNotTheMembers) {
  Train();
  Closed();
  Copied(1);
  now += 2 * job.lease;
  EXPECT_THAT(Tick(), IsEmpty());
  EXPECT_TRUE(members->NotAlive(TaskType::kPs).empty());
}

// Its name has appeared, although the sync after that failed.
TEST_F(JobDriverEndTest, LastCheckpointThatIsThereAfterAnErrorIsEnough) {
  Train();
  Closed();
  Copied(1);
  Written(1, absl::UnknownError("cannot sync the directory"));
  Pass(absl::Seconds(1));
  Closed();
  Copied(1);
  EXPECT_THAT(Written(1, absl::AlreadyExistsError("there")),
              Contains("check 1"));
  EXPECT_THAT(On(SavedChecked{1, true}), Contains("saved 1"));
  EXPECT_THAT(Closed(), IsEmpty());
}

TEST_F(JobDriverEndTest, LastCheckpointIsTriedAgainWhileTheVolumeIsFull) {
  Train();
  Closed();
  Copied(1);
  EXPECT_THAT(Written(1, absl::ResourceExhaustedError("no space")),
              Contains("unsaved: step 1: no space"));
  EXPECT_THAT(waits, ElementsAre("the end: the checkpoint of step 1, which "
                                 "cannot be written: no space"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("finishing", "close tokens"));
}

TEST_F(JobDriverEndTest, PausesBetweenAttemptsGrow) {
  Train();
  Closed(absl::InternalError("no"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("finishing", "close tokens"));
  Closed(absl::InternalError("no"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("finishing", "close tokens"));
}

TEST_F(JobDriverEndTest, ServerThatDoesNotAnswerIsBroughtTogetherFirst) {
  Train();
  Closed(absl::UnavailableError("ps 0: gone"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)), ElementsAre("recover 1"));
  EXPECT_THAT(Recovered(1, -1, RecoveryPlan::Action::kResume),
              ElementsAre("at 1", "lost: 1 0 0", "finishing", "close tokens"));
}

TEST_F(JobDriverEndTest, StepsThatAreLostAtTheEndAreMadeAgain) {
  Train();
  Closed(absl::UnavailableError("ps 0: gone"));
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(
      Recovered(0, -1, RecoveryPlan::Action::kGoBack),
      ElementsAre("redone: committed steps 1 to 1", "at 0", "lost: 1 0 1",
                  "training", "open settings", "take 0 at 0", "take 1 at 0"));
  EXPECT_THAT(Step(),
              ElementsAre("at 1", "tell of commit 1 #1", "close settings",
                          "finishing", "close tokens"));
}

TEST_F(JobDriverEndTest, TimeOfLostStepsIsNoWaitForTheLastCheckpoint) {
  Train();
  Closed(absl::UnavailableError("ps 0: gone"));
  Pass(absl::Milliseconds(100));
  Recovered(0, -1, RecoveryPlan::Action::kGoBack);
  now += job.max_wait - absl::Seconds(1);  // less than fails the step
  Step();
  now += absl::Seconds(1);
  EXPECT_THAT(Closed(absl::InternalError("no")), IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("finishing", "close tokens"));
}

TEST_F(JobDriverEndTest, StopWhileLostStepsAreMadeAgainStopsTheJob) {
  job.train_steps = 2;
  Open();
  Step();
  Step();
  Closed(absl::UnavailableError("ps 0: gone"));
  Pass(absl::Milliseconds(100));
  Recovered(0, -1, RecoveryPlan::Action::kGoBack);
  Stop();
  EXPECT_THAT(Step(),
              ElementsAre("at 1", "tell of commit 1 #1", "close settings",
                          "finishing", "close tokens"));
  Closed();
  Copied(1);
  EXPECT_THAT(Written(1), Contains("stopped: enough"));
}

TEST_F(JobDriverEndTest, LastCheckpointThatStaysUnwrittenFailsTheJob) {
  Train();
  now += job.max_wait;
  EXPECT_THAT(
      Closed(absl::InternalError("no")),
      ElementsAre("close settings", "sum up",
                  "failed: the last checkpoint could not be written: no; "
                  "where --state_dir was given, servers keep step 1 in it, and "
                  "the job goes on from there when it is started again"));
}

TEST_F(JobDriverEndTest, JobThatWasAskedToStopDoesNotTryForLong) {
  Train();
  Stop();
  now += absl::Seconds(5);
  EXPECT_THAT(Closed(absl::InternalError("no")),
              Contains(HasSubstr("failed: the last checkpoint")));
}

TEST_F(JobDriverEndTest, NewerChiefAtTheEndIsGivenWayTo) {
  Train();
  EXPECT_THAT(Closed(absl::AbortedError("epoch 9")),
              Contains(HasSubstr("finish UNAVAILABLE: a newer chief")));
}

TEST_F(JobDriverEndTest, NewerChiefIsGivenWayToWhileACheckpointIsWritten) {
  job.train_steps = 100;
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  EXPECT_THAT(TakeFailed(0, absl::AbortedError("epoch 9")),
              Contains(HasSubstr("finish while writing UNAVAILABLE")));
}

TEST_F(JobDriverEndTest, StoppedJobSavesItsStepAndSaysWhy) {
  job.train_steps = 100;
  Open();
  Stop(/*hold=*/true);
  EXPECT_THAT(Step(),
              ElementsAre("at 1", "tell of commit 1 #1", "close settings",
                          "finishing", "close tokens"));
  Closed();
  Copied(1);
  EXPECT_THAT(Written(1), Contains("stopped: enough (held)"));
}

TEST_F(JobDriverEndTest, StopDoesNotWaitForALastCheckpointThatHangs) {
  job.train_steps = 100;
  Open();
  Stop();
  Step();
  Closed();
  Copied(1);
  EXPECT_THAT(Pass(job.max_wait - absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(Pass(absl::Seconds(2)),
              Contains(AllOf(HasSubstr("failed: the last checkpoint"),
                             HasSubstr("takes longer than max_wait"))));
  LeaveAll();
  EXPECT_THAT(Pass(absl::Seconds(2)),
              Contains(HasSubstr("finish while writing")));
}

TEST_F(JobDriverEndTest, DoneJobWaitsForItsLastCheckpointHoweverLong) {
  Train();
  Closed();
  Copied(1);
  EXPECT_THAT(Pass(2 * job.max_wait), IsEmpty());
  EXPECT_THAT(Written(1), Contains("done: train_steps reached"));
}

TEST_F(JobDriverEndTest, JobWithoutGradientsStopsAfterALease) {
  Open();
  Stop();
  EXPECT_THAT(Pass(job.lease), IsEmpty());
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("close settings", "finishing", "close tokens"));
}

TEST_F(JobDriverEndTest, StopThatHoldsCountsOverOneThatDoesNot) {
  Open();
  Stop();
  On(StopWanted{StoppedStatus("for good", /*hold=*/true)});
  Stop();
  Step();
  Closed();
  Copied(1);
  EXPECT_THAT(Written(1), Contains("stopped: for good (held)"));
}

TEST_F(JobDriverEndTest, StopThatHoldsCountsDuringTheLastCheckpoint) {
  Open();
  Stop();
  Step();
  Closed();
  Copied(1);
  On(StopWanted{StoppedStatus("for good", /*hold=*/true)});
  EXPECT_THAT(Written(1), Contains("stopped: for good (held)"));
}

TEST_F(JobDriverEndTest, StopDuringTheLastCheckpointOfADoneJobStopsNothing) {
  Train();
  Closed();
  Copied(1);
  Stop(/*hold=*/true);
  EXPECT_THAT(Written(1), Contains("done: train_steps reached"));
}

TEST_F(JobDriverEndTest, EndWaitsForTheScoreOfItsLastCheckpoint) {
  options.has_evaluator = true;
  Open();
  Join(TaskType::kEvaluator, 0);
  Step();
  Closed();
  Copied(1);
  EXPECT_THAT(Written(1), ElementsAre("saved 1", "all is saved"));
  EXPECT_THAT(waits, ElementsAre("the end: evaluator 0 to score step 1"));
  EXPECT_THAT(Pass(absl::Seconds(20)), IsEmpty());
  On(Scored{1});
  EXPECT_THAT(
      Pass(absl::Milliseconds(100)),
      ElementsAre("close settings", "sum up", "done: train_steps reached"));
}

TEST_F(JobDriverEndTest, EndWaitsForAScoreAgainIfTheJobHasGoneBack) {
  options.has_evaluator = true;
  Open();
  Join(TaskType::kEvaluator, 0);
  On(Scored{1});
  On(Scored{-1});
  Step();
  Closed();
  Copied(1);
  Written(1);
  EXPECT_THAT(Pass(absl::Seconds(20)), IsEmpty());
  On(Scored{1});
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              Contains("done: train_steps reached"));
}

TEST_F(JobDriverEndTest, EvaluatorThatIsGoneIsNotWaitedForWithoutEnd) {
  options.has_evaluator = true;
  Open();
  Step();
  Closed();
  Copied(1);
  Written(1);
  EXPECT_THAT(Pass(ScoreWait::kGone + absl::Milliseconds(100)),
              ElementsAre("unscored: evaluator 0 is gone", "close settings",
                          "sum up", "done: train_steps reached"));
}

TEST_F(JobDriverEndTest, StopEndsTheWaitForTheScore) {
  TrainAndSaveForTheEvaluator();
  Stop();
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("stopped: enough"));
}

TEST_F(JobDriverEndTest, WorkerThatFailsDuringTheWaitForTheScoreEndsNothing) {
  TrainAndSaveForTheEvaluator();
  Leave(1, LeaveCause::kCannotTakePart, "no data");
  Leave(0, LeaveCause::kNoRoom, "no room for more rows");
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("expire 0 of 1 on 0", "expire 1 of 1 on 0"));
  On(Scored{1});
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              Contains("done: train_steps reached"));
}

TEST_F(JobDriverEndTest, WorkerThatFailsBetweenAttemptsEndsNothing) {
  Train();
  Closed(absl::InternalError("no"));
  Pass(absl::Milliseconds(100));
  Leave(1, LeaveCause::kCannotTakePart, "no data");
  EXPECT_THAT(Closed(absl::InternalError("no")),
              ElementsAre("expire 1 of 1 on 0"));
  EXPECT_THAT(Pass(absl::Milliseconds(200)),
              ElementsAre("finishing", "close tokens"));
}

TEST_F(JobDriverEndTest, FailedJobAwaitsTheCheckpointThatIsWritten) {
  job.train_steps = 100;
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  EXPECT_THAT(TakeFailed(0, absl::InternalError("NaN")),
              ElementsAre("close settings", "close settings"));
  EXPECT_THAT(Written(1), ElementsAre("saved 1"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("sum up", "failed: ps 0: NaN"));
}

TEST_F(JobDriverEndTest, FailedJobDoesNotAwaitAVolumeThatHangs) {
  job.train_steps = 100;
  job.checkpoint.every_steps = 1;
  Open();
  Step();
  Copied(1);
  TakeFailed(0, absl::InternalError("NaN"));
  EXPECT_THAT(Pass(job.max_wait - absl::Milliseconds(100)), IsEmpty());
  EXPECT_THAT(waits,
              ElementsAre("the end: the checkpoint of step 1 to be written"));
  EXPECT_THAT(Pass(absl::Milliseconds(200)),
              ElementsAre("sum up", "failed: ps 0: NaN"));
  EXPECT_THAT(waits, IsEmpty());
}

TEST_F(JobDriverEndTest, CheckpointBeforeAFailureMayTakeMaxWait) {
  Open();
  Leave(1, LeaveCause::kNoRoom, "no room for more rows");
  Pass(absl::Milliseconds(100));
  EXPECT_THAT(Closed(), ElementsAre("copy 0"));
  Copied(0);
  EXPECT_THAT(Pass(job.max_wait - absl::Milliseconds(100)),
              ElementsAre("expire 1 of 1 on 0"));
  EXPECT_THAT(Pass(absl::Milliseconds(100)),
              ElementsAre("close settings", "sum up",
                          "failed: worker 1 left: no room for more rows"));
  EXPECT_THAT(said,
              Contains(AllOf(HasSubstr("no checkpoint of step 0 before"),
                             HasSubstr("takes longer than max_wait (1m)"))));
}

}  // namespace
}  // namespace lockstep::chief
