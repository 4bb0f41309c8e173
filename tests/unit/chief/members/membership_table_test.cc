#include "chief/members/membership_table.h"

#include "common/wire/incarnation_bounds.h"
#include "common/wire/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/members/membership_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = MembershipTable::State;

const TaskId kStranger{TaskType::kWorker, 2};

class MembershipTableTest : public MembershipFixture {};

TEST_F(MembershipTableTest, EveryTaskIsMissingAtFirst) {
  EXPECT_THAT(table_.Members(), SizeIs(3));
  EXPECT_EQ(StateOf(kWorker0), State::kMissing);
  EXPECT_THAT(table_.NotAlive(TaskType::kWorker),
              ElementsAre(kWorker0, kWorker1));
  EXPECT_THAT(table_.TakeDead(now_ + absl::Hours(1)), IsEmpty());
}

TEST_F(MembershipTableTest, RegisteredTaskIsAlive) {
  ASSERT_OK(Register(kWorker0, 5));

  const MembershipTable::Member member = table_.Get(kWorker0);
  EXPECT_EQ(member.state, State::kAlive);
  EXPECT_EQ(member.incarnation, 5u);
  EXPECT_EQ(member.since, now_);
  EXPECT_THAT(table_.NotAlive(TaskType::kWorker), ElementsAre(kWorker1));
  EXPECT_OK(Register(kWorker0, 5));
}

TEST_F(MembershipTableTest, StrangersAreRefused) {
  const auto refused = StatusIs(
      absl::StatusCode::kNotFound,
      AllOf(HasSubstr("worker"), HasSubstr("2"), HasSubstr("TF_CONFIG")));

  EXPECT_THAT(Register(kStranger, 1), refused);
  EXPECT_THAT(Heartbeat(kStranger, 1), refused);
  EXPECT_THAT(table_.Leave(kStranger, 1, LeaveCause::kDone, "", nullptr, now_),
              refused);
  table_.Buried(kStranger, 1);

  EXPECT_THAT(table_.Members(), SizeIs(3));
  EXPECT_EQ(StateOf(kStranger), State::kMissing);
}

TEST_F(MembershipTableTest, HeartbeatOfSomeoneNotRegisteredHasToWait) {
  const auto wait = StatusIs(absl::StatusCode::kUnavailable);
  EXPECT_THAT(Heartbeat(kWorker0, 1), wait);
  EXPECT_THAT(Heartbeat(kWorker0, 0), wait);
  EXPECT_OK(TakeOver(kWorker0, 0));
  EXPECT_EQ(StateOf(kWorker0), State::kMissing);
}

TEST_F(MembershipTableTest, MemberOfTheChiefBeforeIsTakenOver) {
  EXPECT_OK(TakeOver(kWorker0, 5));
  EXPECT_OK(TakeOver(kPs0, 7));

  EXPECT_OK(Heartbeat(kWorker0, 5));
  EXPECT_EQ(StateOf(kPs0), State::kAlive);
  EXPECT_THAT(table_.TakeDead(now_), IsEmpty());
  EXPECT_OK(TakeOver(kWorker0, 4));
  EXPECT_THAT(Heartbeat(kWorker0, 4),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(MembershipTableTest, SuccessorOfATakenOverZombieReplacesIt) {
  ASSERT_OK(TakeOver(kWorker0, 5));

  EXPECT_THAT(TakeOver(kWorker0, 6), StatusIs(absl::StatusCode::kUnavailable));
  BuryAll();

  EXPECT_OK(TakeOver(kWorker0, 6));
  EXPECT_OK(Heartbeat(kWorker0, 6));
  EXPECT_THAT(Heartbeat(kWorker0, 5),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(MembershipTableTest, DeadMemberIsNotTakenOver) {
  ASSERT_OK(Register(kWorker0, 5));
  now_ += 2 * kLease;
  BuryAll();

  EXPECT_OK(TakeOver(kWorker0, 5));

  EXPECT_THAT(Heartbeat(kWorker0, 5), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(MembershipTableTest, UnknownPredecessorIsBuriedFirst) {
  ASSERT_OK(TakeOver(kWorker0, 5));
  table_.ExpectPredecessors();

  EXPECT_THAT(Register(kWorker1, 9), StatusIs(absl::StatusCode::kUnavailable));
  const auto dead = table_.TakeDead(now_);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_EQ(dead[0].task, kWorker1);
  EXPECT_EQ(dead[0].incarnation, 0u);
  BuryAll();

  EXPECT_OK(Register(kWorker1, 9));
  EXPECT_OK(Register(kPs0, 3));  // has no predecessor to clean up
}

TEST_F(MembershipTableTest, SilentMemberOfTheChiefBeforeIsGivenUp) {
  table_.ExpectPredecessors();
  ASSERT_OK(TakeOver(kWorker0, 5));

  table_.GiveUpPredecessors();
  table_.GiveUpPredecessors();

  const auto dead = table_.TakeDead(now_);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_EQ(dead[0].task, kWorker1);
  BuryAll();
  EXPECT_THAT(TakeOver(kWorker1, 5), StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(Register(kWorker1, 6));
  EXPECT_OK(TakeOver(kWorker1, 6));
  EXPECT_OK(Heartbeat(kWorker1, 6));
}

TEST_F(MembershipTableTest, EndOfInputIsAcknowledgedOnceServersKnow) {
  ASSERT_OK(Register(kWorker0, 1));
  const auto leave = [this] {
    return table_.Leave(kWorker0, 1, LeaveCause::kEndOfInput, "end", nullptr,
                        now_);
  };

  EXPECT_THAT(leave(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(leave(), StatusIs(absl::StatusCode::kUnavailable));
  BuryAll();
  EXPECT_OK(leave());
}

TEST_F(MembershipTableTest, MembersSurviveASuspensionOfTheChief) {
  ASSERT_OK(Register(kWorker0, 1));
  now_ += 10 * kLease;

  table_.RenewAll(now_);

  EXPECT_THAT(table_.TakeDead(now_ + kLease), IsEmpty());
  EXPECT_THAT(table_.TakeDead(now_ + 2 * kLease), SizeIs(1));
}

TEST_F(MembershipTableTest, ExpiredMembersMayComeBackOnceBuried) {
  ASSERT_OK(Register(kPs0, 1));
  ASSERT_OK(Register(kWorker0, 1));

  table_.ExpireAll(TaskType::kWorker, "the job went back", now_);

  EXPECT_EQ(StateOf(kPs0), State::kAlive);
  EXPECT_THAT(Heartbeat(kWorker0, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Register(kWorker0, 2), StatusIs(absl::StatusCode::kUnavailable));
  const auto sent_back = table_.Get(kWorker0);
  EXPECT_TRUE(table_.JoinsAgain(sent_back, now_ + kLease));
  EXPECT_FALSE(table_.JoinsAgain(sent_back, now_ + 2 * kLease));
  BuryAll();
  EXPECT_OK(Register(kWorker0, 2));
  EXPECT_FALSE(table_.JoinsAgain(table_.Get(kWorker0), now_));
}

TEST_F(MembershipTableTest, HeartbeatsRenewTheLease) {
  ASSERT_OK(Register(kWorker0, 1));

  for (int i = 0; i < 5; ++i) {
    now_ += kLease;
    EXPECT_OK(Heartbeat(kWorker0, 1));
    EXPECT_THAT(table_.TakeDead(now_), IsEmpty());
  }

  EXPECT_EQ(StateOf(kWorker0), State::kAlive);
}

TEST_F(MembershipTableTest, HeartbeatCarriesProgress) {
  ASSERT_OK(Register(kWorker0, 1));
  Progress progress;
  progress.passes = 7;
  progress.activity = "computes";

  ASSERT_OK(table_.Heartbeat(kWorker0, 1, &progress, now_));
  ASSERT_OK(Heartbeat(kWorker0, 1));

  EXPECT_EQ(table_.Get(kWorker0).progress.passes, 7);
  EXPECT_EQ(table_.Get(kWorker0).progress.activity, "computes");
}

TEST_F(MembershipTableTest, SilenceBeyondTheLeaseIsDeath) {
  ASSERT_OK(Register(kWorker0, 1));
  ASSERT_OK(Register(kWorker1, 1));
  now_ += kLease;
  ASSERT_OK(Heartbeat(kWorker1, 1));
  EXPECT_THAT(table_.TakeDead(now_), IsEmpty());

  now_ += absl::Milliseconds(1);

  EXPECT_THAT(table_.TakeDead(now_),
              ElementsAre(AllOf(Field(&MembershipTable::Dead::task, kWorker0),
                                Field(&MembershipTable::Dead::reason,
                                      HasSubstr("silent for 10s")))));
  EXPECT_EQ(StateOf(kWorker0), State::kDead);
  EXPECT_EQ(StateOf(kWorker1), State::kAlive);
  EXPECT_THAT(Heartbeat(kWorker0, 1), StatusIs(absl::StatusCode::kAborted,
                                               HasSubstr("taken for dead")));
}

TEST_F(MembershipTableTest, DeadAreHandedOutUntilTheyAreBuried) {
  ASSERT_OK(Register(kWorker0, 1));
  now_ += 2 * kLease;

  EXPECT_THAT(table_.TakeDead(now_), SizeIs(1));
  EXPECT_THAT(table_.TakeDead(now_), SizeIs(1));
  table_.Buried(kWorker0, 2);  // not the one that died
  EXPECT_THAT(table_.TakeDead(now_), SizeIs(1));
  table_.Buried(kWorker0, 1);

  EXPECT_THAT(table_.TakeDead(now_), IsEmpty());
  EXPECT_EQ(StateOf(kWorker0), State::kDead);
}

TEST_F(MembershipTableTest, SuccessorJoinsOnceItsPredecessorIsBuried) {
  ASSERT_OK(Register(kWorker0, 1));
  now_ += 2 * kLease;
  ASSERT_THAT(table_.TakeDead(now_), SizeIs(1));

  EXPECT_THAT(Register(kWorker0, 2), StatusIs(absl::StatusCode::kUnavailable));
  table_.Buried(kWorker0, 1);

  EXPECT_OK(Register(kWorker0, 2));
  EXPECT_OK(Heartbeat(kWorker0, 2));
  EXPECT_EQ(table_.Get(kWorker0).incarnation, 2u);
}

TEST_F(MembershipTableTest, NewerIncarnationEndsTheOneThatLives) {
  ASSERT_OK(Register(kWorker0, 1));

  EXPECT_THAT(Register(kWorker0, 2), StatusIs(absl::StatusCode::kUnavailable));

  EXPECT_EQ(StateOf(kWorker0), State::kDead);
  EXPECT_THAT(Heartbeat(kWorker0, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(table_.TakeDead(now_),
              ElementsAre(AllOf(Field(&MembershipTable::Dead::incarnation, 1),
                                Field(&MembershipTable::Dead::reason,
                                      HasSubstr("replaced")))));
  BuryAll();
  EXPECT_OK(Register(kWorker0, 2));
}

TEST_F(MembershipTableTest, OlderOrDeadIncarnationDoesNotComeBack) {
  ASSERT_OK(Register(kWorker0, 5));
  now_ += 2 * kSilence;
  EXPECT_THAT(Register(kWorker0, 4),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the newest is 5")));
  EXPECT_EQ(StateOf(kWorker0), State::kAlive);
  now_ += 2 * kLease;
  BuryAll();

  EXPECT_THAT(Register(kWorker0, 5),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(Register(kWorker0, 6));
}

TEST_F(MembershipTableTest, OlderIncarnationLearnsTheNewestOneThatIsOver) {
  ASSERT_OK(Register(kWorker0, 500));
  ASSERT_OK(
      table_.Leave(kWorker0, 500, LeaveCause::kStopped, "", nullptr, now_));
  BuryAll();

  EXPECT_EQ(NewestIncarnationOf(Register(kWorker0, 4)), 500U);
}

TEST_F(MembershipTableTest, OlderIncarnationWaitsUntilTheNewerOneIsSilent) {
  ASSERT_OK(Register(kWorker0, 500));

  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Register(kWorker0, 4),
                StatusIs(absl::StatusCode::kUnavailable));
    now_ += kSilence / 2;
  }
  now_ += kSilence / 2;

  const absl::Status told = Register(kWorker0, 4);
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(NewestIncarnationOf(told), 500U);
  EXPECT_THAT(Register(kWorker0, 501), StatusIs(absl::StatusCode::kUnavailable,
                                                HasSubstr("being cleaned up")));
  BuryAll();
  EXPECT_OK(Register(kWorker0, 501));
}

TEST_F(MembershipTableTest, OlderIncarnationLeavesWhereTheNewerOneLives) {
  ASSERT_OK(Register(kWorker0, 500));

  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Register(kWorker0, 4),
                StatusIs(absl::StatusCode::kUnavailable));
    now_ += kSilence / 2;
    ASSERT_OK(table_.Heartbeat(kWorker0, 500, nullptr, now_));
  }

  const absl::Status told = Register(kWorker0, 4);
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(NewestIncarnationOf(told), 0U);
  EXPECT_EQ(StateOf(kWorker0), State::kAlive);
  // Another process is not taken for the one before.
  EXPECT_THAT(Register(kWorker0, 5), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(MembershipTableTest, IncarnationThatNoClockDrawsIsRefusedWithoutEffect) {
  constexpr uint64_t kMost = kMaxDrawnIncarnation;
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("set the clock"));
  EXPECT_THAT(Register(kWorker0, kMost + kMaxIncarnationLead + 1), refused);
  EXPECT_THAT(Register(kWorker0, ~uint64_t{0}), refused);
  EXPECT_THAT(TakeOver(kWorker0, ~uint64_t{0}), refused);
  EXPECT_EQ(StateOf(kWorker0), State::kMissing);

  ASSERT_OK(Register(kWorker0, kMost));
  now_ += 2 * kLease;
  BuryAll();

  EXPECT_OK(Register(kWorker0, kMost + 1));
}

TEST_F(MembershipTableTest, LeavingIsNotDyingButIsCleanedUpToo) {
  ASSERT_OK(Register(kWorker0, 1));
  Progress progress;
  progress.accepted = 3;

  ASSERT_OK(table_.Leave(kWorker0, 1, LeaveCause::kNoRoom, "no room", &progress,
                         now_));
  ASSERT_OK(
      table_.Leave(kWorker0, 1, LeaveCause::kDone, "again", nullptr, now_));

  const MembershipTable::Member member = table_.Get(kWorker0);
  EXPECT_EQ(member.state, State::kLeft);
  EXPECT_EQ(member.leave_reason, "no room");
  EXPECT_EQ(member.progress.accepted, 3);
  EXPECT_THAT(table_.NotAlive(TaskType::kWorker),
              ElementsAre(kWorker0, kWorker1));
  EXPECT_THAT(table_.TakeDead(now_ + absl::Hours(1)),
              ElementsAre(AllOf(
                  Field(&MembershipTable::Dead::reason, "left: no room"),
                  Field(&MembershipTable::Dead::cause, DeathCause::kLeft),
                  Field(&MembershipTable::Dead::leave, LeaveCause::kNoRoom))));
}

TEST_F(MembershipTableTest,
       DelayedRegistrationDoesNotBringBackAWorkerThatHasLeft) {
  ASSERT_OK(Register(kWorker0, 1));
  ASSERT_OK(
      table_.Leave(kWorker0, 1, LeaveCause::kDone, "done", nullptr, now_));
  BuryAll();

  EXPECT_THAT(
      Register(kWorker0, 1),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has left")));

  EXPECT_EQ(StateOf(kWorker0), State::kLeft);
  EXPECT_OK(Register(kWorker0, 2));
  EXPECT_EQ(table_.Get(kWorker0).leave_reason, "");
}

TEST_F(MembershipTableTest, LeavingNeedsMembership) {
  EXPECT_THAT(table_.Leave(kWorker0, 1, LeaveCause::kDone, "", nullptr, now_),
              StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_OK(Register(kWorker0, 2));
  EXPECT_THAT(table_.Leave(kWorker0, 1, LeaveCause::kDone, "", nullptr, now_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(StateOf(kWorker0), State::kAlive);
}

TEST_F(MembershipTableTest, NewIncarnationStartsWithoutProgress) {
  ASSERT_OK(Register(kWorker0, 1));
  Progress progress;
  progress.passes = 7;
  ASSERT_OK(table_.Heartbeat(kWorker0, 1, &progress, now_));
  ASSERT_OK(Register(kWorker0, 1));
  EXPECT_EQ(table_.Get(kWorker0).progress.passes, 7);
  now_ += 2 * kLease;
  BuryAll();

  ASSERT_OK(Register(kWorker0, 2));

  EXPECT_EQ(table_.Get(kWorker0).progress.passes, 0);
}

TEST_F(MembershipTableTest, OnlyAWorkerThatIsTakenOverTellsOfAChiefBefore) {
  ASSERT_OK(Register(kWorker0, 5));
  ASSERT_OK(TakeOver(kPs0, 7));
  EXPECT_FALSE(table_.HasTakenOver());

  ASSERT_OK(TakeOver(kWorker1, 3));

  EXPECT_TRUE(table_.HasTakenOver());
}

}  // namespace
}  // namespace lockstep::chief
