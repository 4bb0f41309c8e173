// Workers that die, and the attempts that follow.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::CancelledFor;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::RedoFor;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Decision = Gate::Decision;

const absl::Time kNow = absl::FromUnixSeconds(1000);

MATCHER_P(Says, decision, "says the decision") {
  return arg.decision == decision;
}
MATCHER_P(SelectedFor, attempt, "is selected") {
  return arg.decision == Decision::kSelected && arg.attempt == attempt;
}

// The only pass of a worker's first incarnation for a step.
Pass PassOf(int worker, int64_t step = 0, uint64_t incarnation = 1) {
  return {worker, incarnation, step, step + 1, 0};
}
Pass FirstWait(int worker, uint64_t incarnation = 1) {
  return {worker, incarnation, -1, 0, 0};
}

// Three replicas of which two count.
class StrictGateExpiryTest : public ::testing::Test {
 protected:
  StrictGateExpiryTest() { EXPECT_THAT(gate_.Activate(0), IsEmpty()); }

  void Announce(int worker, Decision expected, int64_t step = 0) {
    EXPECT_THAT(gate_.Announce(PassOf(worker, step)),
                IsOkAndHolds(Says(expected)));
  }
  // Files a wait under the worker's number; it must not be ready.
  void WaitAs(int worker, int64_t attempt, int64_t step = 0) {
    EXPECT_THAT(gate_.Wait(worker, PassOf(worker, step), attempt, kNow),
                IsOkAndHolds(IsEmpty()));
  }

  StrictGate gate_{{.replicas_to_aggregate = 2, .total_num_replicas = 3}};
};

TEST_F(StrictGateExpiryTest, DeadMemberIsReplacedByTheNextThatAnnounced) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_TRUE(expired.held_announcement);
  EXPECT_EQ(expired.step, 0);
  EXPECT_EQ(expired.attempt, 2);
  EXPECT_THAT(gate_.Members(), ElementsAre(1, 2));
  EXPECT_THAT(gate_.Announce(PassOf(2)), IsOkAndHolds(SelectedFor(2)));
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

  EXPECT_THAT(gate_.Wait(1, PassOf(1), 1, kNow),
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

  EXPECT_THAT(gate_.Announce(PassOf(1, 1)), IsOkAndHolds(SelectedFor(1)));
}

TEST_F(StrictGateExpiryTest, DeadIncarnationIsHeardNoMore) {
  Announce(0, Decision::kSelected);
  gate_.Expire(0, 1);

  EXPECT_THAT(gate_.Announce(PassOf(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has been replaced")));
  EXPECT_THAT(gate_.Wait(0, PassOf(0), 1, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_THAT(gate_.Members(), IsEmpty());
  EXPECT_THAT(gate_.Announce(PassOf(0, 0, 2)), IsOkAndHolds(SelectedFor(2)));
}

TEST_F(StrictGateExpiryTest, SuccessorWaitsUntilItsPredecessorIsExpired) {
  Announce(0, Decision::kSelected);

  EXPECT_THAT(gate_.Announce(PassOf(0, 0, 2)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("register with the chief")));
  EXPECT_THAT(gate_.Wait(0, FirstWait(0, 2), 0, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_THAT(gate_.Members(), ElementsAre(0));
}

TEST_F(StrictGateExpiryTest, NewerIncarnationThatWaitedShutsOutAnOlderOne) {
  ASSERT_THAT(gate_.Wait(1, FirstWait(0, 2), 0, kNow),
              IsOkAndHolds(ElementsAre(TokenFor(1, 0))));

  EXPECT_THAT(gate_.Announce(PassOf(0, 0, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(gate_.Wait(2, PassOf(0, 0, 1), 0, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(StrictGateExpiryTest, ExpiryOfAnOldIncarnationSparesTheNewOne) {
  gate_.Expire(0, 1);
  ASSERT_THAT(gate_.Announce(PassOf(0, 0, 2)), IsOkAndHolds(SelectedFor(1)));
  ASSERT_THAT(gate_.Wait(5, PassOf(0, 0, 2), 1, kNow), IsOkAndHolds(IsEmpty()));

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_FALSE(expired.held_announcement);
  EXPECT_THAT(expired.answers, IsEmpty());
  EXPECT_THAT(gate_.Members(), ElementsAre(0));
}

}  // namespace
}  // namespace lockstep::server
