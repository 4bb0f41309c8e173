// Workers that are shut out when the job goes back.

#include "chief/members/membership_table.h"
#include "common/wire/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/members/membership_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ShutOutWorkersTest : public MembershipFixture {};

TEST_F(ShutOutWorkersTest, WorkerIsLetInOnlyAsTheIncarnationThatRegisters) {
  ASSERT_OK(Register(kWorker0, 5));
  table_.ShutOutWorkers();

  // As another chief knew it, while this one hung.
  EXPECT_THAT(TakeOver(kWorker0, 7), StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(Heartbeat(kWorker0, 5));
  now_ += 2 * kLease;
  BuryAll();  // incarnation 5, which lets in no other
  EXPECT_THAT(TakeOver(kWorker0, 7), StatusIs(absl::StatusCode::kAborted));

  EXPECT_THAT(Register(kWorker0, 9), StatusIs(absl::StatusCode::kUnavailable));
  const auto dead = table_.TakeDead(now_);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_EQ(dead[0].incarnation, 8u);
  BuryAll();
  EXPECT_OK(Register(kWorker0, 9));
  EXPECT_THAT(table_.ShutOut(), ElementsAre(WorkerStanding{1, 0}));
}

// A chief that was started again changes the job before it hears of worker 0.
TEST_F(ShutOutWorkersTest, UnheardWorkerMustLearnOfTheChangeOfAJob) {
  ASSERT_OK(TakeOver(kWorker1, 4));
  table_.ExpectPredecessors();

  table_.ExpireAll(TaskType::kWorker, "the workers change", now_);

  EXPECT_THAT(TakeOver(kWorker0, 5), StatusIs(absl::StatusCode::kAborted));
  const auto shut_out = table_.ShutOut();
  ASSERT_THAT(shut_out, SizeIs(1));
  EXPECT_EQ(shut_out[0].worker, 0);
  EXPECT_EQ(shut_out[0].shut_out_above, 0u);
  EXPECT_THAT(Register(kWorker0, 9), StatusIs(absl::StatusCode::kUnavailable));
  BuryAll();
  EXPECT_OK(Register(kWorker0, 9));
}

TEST_F(ShutOutWorkersTest, WorkerWhoseDataHaveJustEndedHasDataAgain) {
  ASSERT_OK(Register(kWorker0, 5));
  const auto leave = [this] {
    return table_.Leave(kWorker0, 5, LeaveCause::kEndOfInput, "end", nullptr,
                        now_);
  };
  ASSERT_THAT(leave(), StatusIs(absl::StatusCode::kUnavailable));

  table_.ShutOutWorkers();

  EXPECT_THAT(leave(), StatusIs(absl::StatusCode::kAborted));
  const auto dead = table_.TakeDead(now_);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_EQ(dead[0].incarnation, 5u);
  EXPECT_EQ(dead[0].cause, DeathCause::kWentBack);
  EXPECT_NE(dead[0].leave, LeaveCause::kEndOfInput);
  EXPECT_TRUE(table_.JoinsAgain(table_.Get(kWorker0), now_));
  EXPECT_THAT(Register(kWorker0, 9), StatusIs(absl::StatusCode::kUnavailable));
  BuryAll();
  EXPECT_OK(Register(kWorker0, 9));
}

TEST_F(ShutOutWorkersTest, WorkerWhoseEndOfDataServersKnowHasLeft) {
  ASSERT_OK(Register(kWorker0, 5));
  table_.Leave(kWorker0, 5, LeaveCause::kEndOfInput, "end", nullptr, now_)
      .IgnoreError();
  BuryAll();

  table_.ShutOutWorkers();

  EXPECT_EQ(table_.Get(kWorker0).state, MembershipTable::State::kLeft);
}

TEST_F(ShutOutWorkersTest, ShutOutWorkerNeedsAnIncarnationBetween) {
  ASSERT_OK(Register(kWorker0, 5));
  table_.ShutOutWorkers();

  const absl::Status refused = Register(kWorker0, 6);

  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(NewestIncarnationOf(refused), 6u);
  EXPECT_THAT(Register(kWorker0, 7), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ShutOutWorkersTest, WorkerThatServersShutOutIsNotTakenOver) {
  ASSERT_OK(TakeOver(kWorker0, 7));
  ASSERT_OK(Register(kWorker1, 9));

  table_.ShutOutWorkers({{0, 5}, {1, 5}}, now_);

  EXPECT_THAT(Heartbeat(kWorker0, 7), StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(Register(kWorker0, 8));
  EXPECT_OK(Heartbeat(kWorker1, 9));
}

TEST_F(ShutOutWorkersTest, WorkerThatServersAdmitIsTakenOver) {
  ASSERT_OK(TakeOver(kWorker0, 5));

  table_.ShutOutWorkers({{0, 5}, {1, 3}}, now_);

  EXPECT_OK(Heartbeat(kWorker0, 5));
  EXPECT_THAT(TakeOver(kWorker1, 4), StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(TakeOver(kWorker1, 3));
  EXPECT_THAT(table_.ShutOut(),
              ElementsAre(WorkerStanding{0, 5}, WorkerStanding{1, 3}));
}

TEST_F(ShutOutWorkersTest, WorkerThatWasAwayWhenTheJobWentBackJoinsAnew) {
  ASSERT_OK(Register(kWorker1, 5));
  table_.ShutOutWorkers();
  EXPECT_THAT(table_.ShutOut(),
              ElementsAre(WorkerStanding{0, 0}, WorkerStanding{1, 5}));

  EXPECT_THAT(TakeOver(kWorker0, 3), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Register(kWorker0, 8), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(table_.ShutOut(), SizeIs(2));
  const auto dead = table_.TakeDead(now_);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_EQ(dead[0].task, kWorker0);
  EXPECT_EQ(dead[0].incarnation, 7u);
  BuryAll();

  EXPECT_OK(Register(kWorker0, 8));
  EXPECT_THAT(table_.ShutOut(), ElementsAre(WorkerStanding{1, 5}));
}

// Its process must register again, and is then told why it may not.
TEST(LeftOutMirrorTest, HeartbeatsEndAndAnotherProcessMayCome) {
  const TaskId mirror{TaskType::kPs, 2};
  MembershipTable table({mirror}, absl::Seconds(10));
  const absl::Time now = absl::FromUnixSeconds(1000);
  ASSERT_OK(table.Register(mirror, 5, now));

  EXPECT_TRUE(table.LeaveOut(mirror, "no memory", now));

  EXPECT_FALSE(table.LeaveOut(mirror, "no memory", now));
  EXPECT_THAT(table.Heartbeat(mirror, 5, nullptr, now),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("no memory")));
  EXPECT_EQ(table.Get(mirror).state, MembershipTable::State::kLeft);

  for (const MembershipTable::Dead& dead : table.TakeDead(now)) {
    table.Buried(dead.task, dead.incarnation);
  }
  EXPECT_OK(table.Register(mirror, 6, now));
  EXPECT_OK(table.Heartbeat(mirror, 6, nullptr, now));
}

// Its last heartbeat may be on the way as it leaves.
TEST(LeftOutMirrorTest, MemberThatLeavesByItselfNeedNotRegister) {
  const TaskId worker{TaskType::kWorker, 2};
  MembershipTable table({worker}, absl::Seconds(10));
  const absl::Time now = absl::FromUnixSeconds(1000);
  ASSERT_OK(table.Register(worker, 5, now));

  ASSERT_OK(table.Leave(worker, 5, LeaveCause::kCannotTakePart, "no data",
                        nullptr, now));

  EXPECT_OK(table.Heartbeat(worker, 5, nullptr, now));
}

}  // namespace
}  // namespace lockstep::chief
