// Waits of workers that still compute.

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::CancelledFor;
using ::lockstep::testing::FinishedFor;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::RedoFor;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Decision = Gate::Decision;

const absl::Time kNow = absl::FromUnixSeconds(1000);

Pass WatchedPass(int worker, int64_t step = 0, uint64_t incarnation = 1) {
  return {worker, incarnation, step, step + 1, 0};
}

// Three replicas of which two count; worker 2 watches.
class StrictGateWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gate_.Activate(0);
    EXPECT_THAT(gate_.Watch(7, WatchedPass(2), kNow), IsOkAndHolds(IsEmpty()));
  }
  Decision Announce(int worker, int64_t step = 0) {
    const auto announced = gate_.Announce(WatchedPass(worker, step));
    EXPECT_OK(announced);
    return announced->decision;
  }

  StrictGate gate_{{.replicas_to_aggregate = 2, .total_num_replicas = 3}};
};

TEST_F(StrictGateWatchTest, CommitEndsTheWatch) {
  Announce(0);
  Announce(1);

  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(ElementsAre(TokenFor(7, 1))));
}

// A program goes on with the values that its last push has brought.
TEST_F(StrictGateWatchTest, FinishNamesTheStepAndTheAttemptThatMadeIt) {
  Announce(0);
  Announce(1);
  ASSERT_OK(gate_.Commit(1, 1));
  ASSERT_THAT(gate_.Finish(), IsEmpty());

  const auto answers = gate_.Wait(8, WatchedPass(0), 1, kNow);

  ASSERT_THAT(answers, IsOkAndHolds(ElementsAre(FinishedFor(8))));
  EXPECT_EQ((*answers)[0].step, 1);
  EXPECT_EQ((*answers)[0].attempt, 1);
}

TEST_F(StrictGateWatchTest, IncarnationThatNoClockDrawsIsRefusedWithoutEffect) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("worker 1 has incarnation"));
  constexpr uint64_t kLargest = uint64_t{1} << 62;
  EXPECT_THAT(gate_.Wait(8, WatchedPass(1, 0, kLargest), 0, kNow), refused);
  EXPECT_THAT(gate_.Watch(8, WatchedPass(1, 0, kLargest), kNow), refused);
  EXPECT_THAT(gate_.Announce(WatchedPass(1, 0, kLargest)), refused);

  EXPECT_EQ(Announce(1), Decision::kSelected);
}

TEST_F(StrictGateWatchTest, WatchOfAStepThatIsOverIsAnsweredAtOnce) {
  Announce(0);
  Announce(1);
  ASSERT_OK(gate_.Commit(1, 1));

  EXPECT_THAT(gate_.Watch(8, WatchedPass(2), kNow),
              IsOkAndHolds(ElementsAre(TokenFor(8, 1))));
}

TEST_F(StrictGateWatchTest, WatchedPassMayBeAnnounced) {
  EXPECT_EQ(Announce(2), Decision::kSelected);
  EXPECT_EQ(Announce(2), Decision::kSelected);

  EXPECT_THAT(gate_.Members(), ElementsAre(2));
}

TEST_F(StrictGateWatchTest, RepeatedWatchAfterTheAnnouncementIsFiled) {
  Announce(0);
  Announce(1);
  EXPECT_EQ(Announce(2), Decision::kNotNeeded);

  EXPECT_THAT(gate_.Watch(8, WatchedPass(2), kNow),
              IsOkAndHolds(ElementsAre(CancelledFor(7))));

  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(ElementsAre(TokenFor(8, 1))));
}

TEST_F(StrictGateWatchTest, WaitForTheTokenEndsTheWatch) {
  Announce(2);

  EXPECT_THAT(gate_.Wait(8, WatchedPass(2), 1, kNow),
              IsOkAndHolds(ElementsAre(CancelledFor(7))));
}

TEST_F(StrictGateWatchTest, DelayedWatchDoesNotDisturbTheWait) {
  ASSERT_OK(gate_.Wait(8, WatchedPass(2), 0, kNow));

  EXPECT_THAT(gate_.Watch(9, WatchedPass(2), kNow),
              IsOkAndHolds(ElementsAre(CancelledFor(9))));

  Announce(0);
  Announce(1);
  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(ElementsAre(TokenFor(8, 1))));
}

TEST_F(StrictGateWatchTest, PassThatWaitedIsAnnouncedNoMore) {
  ASSERT_OK(gate_.Wait(8, WatchedPass(2), 0, kNow));

  EXPECT_EQ(Announce(2), Decision::kTooLate);
}

// The gradient is not there yet; its wait for the token says what to do.
TEST_F(StrictGateWatchTest, PromotedBackupLearnsOfItWhenItHasComputed) {
  Announce(0);
  Announce(1);
  Announce(2);

  EXPECT_THAT(gate_.Expire(0, 1).answers, IsEmpty());

  EXPECT_THAT(gate_.Members(), ElementsAre(1, 2));
  EXPECT_THAT(gate_.Wait(8, WatchedPass(2), 0, kNow),
              IsOkAndHolds(ElementsAre(RedoFor(8, 2), CancelledFor(7))));
}

TEST_F(StrictGateWatchTest, FinishEndsTheWatch) {
  EXPECT_THAT(gate_.Finish(), ElementsAre(FinishedFor(7)));

  EXPECT_THAT(gate_.Watch(8, WatchedPass(1), kNow),
              IsOkAndHolds(ElementsAre(FinishedFor(8))));
}

TEST_F(StrictGateWatchTest, StepsGoOnWhenAnEndIsTakenBack) {
  EXPECT_THAT(gate_.Finish(), ElementsAre(FinishedFor(7)));
  gate_.Reopen();

  EXPECT_EQ(Announce(0), Decision::kSelected);
  EXPECT_THAT(gate_.Watch(8, WatchedPass(2), kNow), IsOkAndHolds(IsEmpty()));
}

TEST_F(StrictGateWatchTest, ExpiryOfTheWatcherEndsTheWatch) {
  EXPECT_THAT(gate_.Expire(2, 1).answers, ElementsAre(CancelledFor(7)));

  EXPECT_THAT(gate_.Watch(8, WatchedPass(2), kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(StrictGateWatchTest, WorkerThatComputesIsNotReportedAsWaiting) {
  EXPECT_THAT(gate_.WaitingWorkers(), IsEmpty());
}

TEST_F(StrictGateWatchTest, WithdrawnWatchIsNotAnswered) {
  gate_.Cancel(7);
  Announce(0);
  Announce(1);

  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(IsEmpty()));
}

TEST_F(StrictGateWatchTest, WorkersOutOfRangeAreRefused) {
  for (const Pass& pass : {Pass{-1, 1, 0, 1, 0}, Pass{3, 1, 0, 1, 0},
                           Pass{0, 1, 0, 1, 1}, Pass{0, 1, 0, 1, -1}}) {
    EXPECT_THAT(gate_.Watch(9, pass, kNow),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(StrictGateWatchSharesTest, WatchIsNotGivenTheTokenOfAShare) {
  StrictGate gate({.replicas_to_aggregate = 2, .total_num_replicas = 1});
  gate.Activate(0);

  EXPECT_THAT(gate.Watch(1, WatchedPass(0), kNow), IsOkAndHolds(IsEmpty()));
}

TEST(StrictGateWatchWithoutBackupsTest, WatchMakesNoWorkerAMember) {
  StrictGate gate({.replicas_to_aggregate = 1, .total_num_replicas = 1});
  gate.Activate(0);
  ASSERT_OK(gate.Announce(WatchedPass(0)));
  ASSERT_OK(gate.Watch(1, WatchedPass(0), kNow));

  EXPECT_THAT(gate.Commit(1, 1), IsOkAndHolds(ElementsAre(TokenFor(1, 1))));

  EXPECT_THAT(gate.Members(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
