// Workers that die, and the attempts that follow.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"
#include "tests/unit/server/step/strict/strict_gate_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::CancelledFor;
using ::lockstep::testing::FirstWait;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::kNow;
using ::lockstep::testing::PassOfStep;
using ::lockstep::testing::RedoFor;
using ::lockstep::testing::Says;
using ::lockstep::testing::SelectedFor;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Decision = Gate::Decision;

class StrictGateExpiryTest : public testing::StrictGateFixture {};

TEST_F(StrictGateExpiryTest, DeadMemberIsReplacedByTheNextThatAnnounced) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_TRUE(expired.held_announcement);
  EXPECT_EQ(expired.step, 0);
  EXPECT_EQ(expired.attempt, 2);
  EXPECT_THAT(gate_.Members(), ElementsAre(1, 2));
  EXPECT_THAT(gate_.Announce(PassOfStep(2)), IsOkAndHolds(SelectedFor(2)));
}

TEST_F(StrictGateExpiryTest, SurvivorsAndThePromotedPushAgain) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);
  WaitAs(1, 1);
  WaitAs(2, 0);

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_THAT(expired.answers,
              UnorderedElementsAre(RedoFor(1, 2), RedoFor(2, 2)));
}

TEST_F(StrictGateExpiryTest, SurvivorThatWaitsLaterStillLearnsOfTheNewAttempt) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  gate_.Expire(0, 1);

  EXPECT_THAT(gate_.Wait(1, PassOfStep(1), 1, kNow),
              IsOkAndHolds(ElementsAre(RedoFor(1, 2))));

  // Having pushed for the new attempt, it waits for the commit.
  WaitAs(1, 2);
}

TEST_F(StrictGateExpiryTest, DeathOfABackupStartsNoAttempt) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);
  WaitAs(0, 1);
  WaitAs(2, 0);

  const Gate::Expired expired = gate_.Expire(2, 1);

  EXPECT_FALSE(expired.held_announcement);
  EXPECT_EQ(expired.attempt, 1);
  EXPECT_THAT(expired.answers, ElementsAre(CancelledFor(2)));
  EXPECT_OK(gate_.Commit(1, 1));
}

TEST_F(StrictGateExpiryTest, ExpiringAgainStartsNoSecondAttempt) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  gate_.Expire(0, 1);

  const Gate::Expired again = gate_.Expire(0, 1);

  EXPECT_FALSE(again.held_announcement);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_THAT(again.answers, IsEmpty());
}

TEST_F(StrictGateExpiryTest, AttemptsCountFromOneInEveryStep) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);
  gate_.Expire(0, 1);
  ASSERT_OK(gate_.Commit(1, 2));

  EXPECT_THAT(gate_.Announce(PassOfStep(1, 1)), IsOkAndHolds(SelectedFor(1)));
}

TEST_F(StrictGateExpiryTest, DeadIncarnationIsHeardNoMore) {
  Announce(0, Decision::kSelected);
  gate_.Expire(0, 1);

  EXPECT_THAT(gate_.Announce(PassOfStep(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has been replaced")));
  EXPECT_THAT(gate_.Wait(0, PassOfStep(0), 1, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_THAT(gate_.Members(), IsEmpty());
  EXPECT_THAT(gate_.Announce(PassOfStep(0, 0, 2)),
              IsOkAndHolds(SelectedFor(2)));
}

TEST_F(StrictGateExpiryTest, SuccessorWaitsUntilItsPredecessorIsExpired) {
  Announce(0, Decision::kSelected);

  EXPECT_THAT(gate_.Announce(PassOfStep(0, 0, 2)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("register with the chief")));
  EXPECT_THAT(gate_.Wait(0, FirstWait(0, 2), 0, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_THAT(gate_.Members(), ElementsAre(0));
}

TEST_F(StrictGateExpiryTest, NewerIncarnationThatWaitedShutsOutAnOlderOne) {
  ASSERT_THAT(gate_.Wait(1, FirstWait(0, 2), 0, kNow),
              IsOkAndHolds(ElementsAre(TokenFor(1, 0))));

  EXPECT_THAT(gate_.Announce(PassOfStep(0, 0, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(gate_.Wait(2, PassOfStep(0, 0, 1), 0, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(StrictGateExpiryTest, ExpiryOfAnOldIncarnationSparesTheNewOne) {
  gate_.Expire(0, 1);
  ASSERT_THAT(gate_.Announce(PassOfStep(0, 0, 2)),
              IsOkAndHolds(SelectedFor(1)));
  ASSERT_THAT(gate_.Wait(5, PassOfStep(0, 0, 2), 1, kNow),
              IsOkAndHolds(IsEmpty()));

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_FALSE(expired.held_announcement);
  EXPECT_THAT(expired.answers, IsEmpty());
  EXPECT_THAT(gate_.Members(), ElementsAre(0));
}

}  // namespace
}  // namespace lockstep::server
