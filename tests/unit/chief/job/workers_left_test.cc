#include "chief/job/workers_left.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;

class WorkersLeftTest : public ::testing::Test {
 protected:
  static JobConfig Job() {
    JobConfig job;
    job.replicas_to_aggregate = 2;
    job.total_num_replicas = 3;
    return job;
  }
  // Workers from 0 on that failed for good.
  static std::vector<MembershipTable::Member> Failed(int count) {
    std::vector<MembershipTable::Member> members(3);
    for (int i = 0; i < 3; ++i) {
      members[i].task = {TaskType::kWorker, i};
      members[i].state = i < count ? MembershipTable::State::kLeft
                                   : MembershipTable::State::kAlive;
      members[i].leave = LeaveCause::kCannotTakePart;
    }
    return members;
  }
  static MembershipTable::Dead Dead() {
    MembershipTable::Dead dead;
    dead.task = {TaskType::kWorker, 0};
    dead.reason = "left: NaN";
    dead.leave = LeaveCause::kCannotTakePart;
    return dead;
  }

  static TaskId Worker(int index) { return {TaskType::kWorker, index}; }

  MembershipTable members_{{Worker(0), Worker(1), Worker(2)},
                           absl::Seconds(10)};
  JobConfig job_ = Job();
  JobSettings settings_{job_};
  WorkersLeft left_{job_, settings_};
};

TEST_F(WorkersLeftTest, InputEndsWhenTooFewWorkersHaveData) {
  EXPECT_FALSE(left_.InputEnded(members_));
  left_.EndedInput(1);
  EXPECT_FALSE(left_.InputEnded(members_));
  left_.EndedInput(1);
  EXPECT_FALSE(left_.InputEnded(members_));
  left_.EndedInput(0);
  EXPECT_TRUE(left_.InputEnded(members_));
}

TEST_F(WorkersLeftTest, JobThatGoesBackHasData) {
  for (const int worker : {0, 1, 2}) left_.EndedInput(worker);
  left_.BeginAnew();
  EXPECT_FALSE(left_.InputEnded(members_));
  EXPECT_TRUE(left_.ended_input().empty());
}

TEST_F(WorkersLeftTest, WorkerThatWasTakenOutIsNotMissedTwice) {
  job_.elastic_workers = true;
  RunSettings settings = settings_.now();
  settings.workers = {0, 1};
  settings.replicas_to_aggregate = 1;
  settings_.Want(settings);
  settings_.Apply();

  left_.EndedInput(2);
  left_.EndedInput(1);
  EXPECT_FALSE(left_.InputEnded(members_));
  left_.EndedInput(0);
  EXPECT_TRUE(left_.InputEnded(members_));
}

TEST_F(WorkersLeftTest, TooFewStayWhenMoreHaveLeftThanAStepCanSpare) {
  std::vector<MembershipTable::Member> members = Failed(1);
  EXPECT_FALSE(left_.TooFewStay(members));
  members[1].state = MembershipTable::State::kDead;  // it may come back
  EXPECT_FALSE(left_.TooFewStay(members));
  members[1].state = MembershipTable::State::kLeft;
  members[1].leave = LeaveCause::kStopped;
  EXPECT_TRUE(left_.TooFewStay(members));
}

TEST_F(WorkersLeftTest, WorkerThatRegistersAgainMayHaveData) {
  left_.EndedInput(0);
  left_.EndedInput(1);
  EXPECT_TRUE(left_.InputEnded(members_));

  ASSERT_OK(members_.Register(Worker(1), 5, absl::UnixEpoch()));

  EXPECT_FALSE(left_.InputEnded(members_));
  EXPECT_EQ(left_.ended_input(), (std::vector<int>{0, 1}));
}

TEST_F(WorkersLeftTest, OneFailureIsMadeGoodByABackup) {
  EXPECT_OK(left_.CheckEnough(Dead(), Failed(1)));
  EXPECT_THAT(left_.CheckEnough(Dead(), Failed(2)),
              StatusIs(absl::StatusCode::kAborted,
                       "worker 0 left: NaN; 1 of 3 workers are left, and a "
                       "step needs 2"));
}

TEST_F(WorkersLeftTest, ElasticJobNeedsItsLastWorkerAlone) {
  job_.elastic_workers = true;
  EXPECT_OK(left_.CheckEnough(Dead(), Failed(2)));
  EXPECT_THAT(left_.CheckEnough(Dead(), Failed(3)),
              StatusIs(absl::StatusCode::kAborted,
                       "worker 0 left: NaN; 0 of 3 workers are left, and a "
                       "step needs 1"));
}

TEST_F(WorkersLeftTest, EndedInputsAreLeftNoMore) {
  left_.EndedInput(2);
  std::vector<MembershipTable::Member> members = Failed(1);
  members[2].state = MembershipTable::State::kLeft;
  members[2].leave = LeaveCause::kEndOfInput;
  EXPECT_THAT(left_.CheckEnough(Dead(), members),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(WorkersLeftTest, WorkerThatIsBackAfterItsInputEndedIsLeft) {
  left_.EndedInput(2);
  EXPECT_OK(left_.CheckEnough(Dead(), Failed(1)));
}

TEST_F(WorkersLeftTest, WorkerThatFailsAfterItsInputEndedCountsOnce) {
  left_.EndedInput(0);
  EXPECT_OK(left_.CheckEnough(Dead(), Failed(1)));
}

TEST_F(WorkersLeftTest, OtherDeathsMayBeMadeGood) {
  MembershipTable::Dead silent = Dead();
  silent.leave = LeaveCause::kStopped;
  EXPECT_OK(left_.CheckEnough(silent, Failed(3)));
}

}  // namespace
}  // namespace lockstep::chief
