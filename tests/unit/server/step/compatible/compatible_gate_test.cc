#include "server/step/compatible/compatible_gate.h"

#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::CancelledFor;
using ::lockstep::testing::FinishedFor;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1000);

Pass PassOf(int worker, int64_t pass, uint64_t incarnation = 1) {
  return {worker, incarnation, /*local_step=*/0, pass, 0};
}

class CompatibleGateTest : public ::testing::Test {
 protected:
  auto Wait(uint64_t ticket, const Pass& pass) {
    return gate_.Wait(ticket, pass, /*attempt=*/0, kNow);
  }

  CompatibleGate gate_{{.initial_tokens = 1, .tokens_per_step = 2}};
};

TEST_F(CompatibleGateTest, ActivateIssuesTheInitialTokensOnce) {
  ASSERT_THAT(Wait(1, PassOf(0, 1)), IsOkAndHolds(IsEmpty()));
  ASSERT_THAT(Wait(2, PassOf(1, 1)), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate_.Activate(7), ElementsAre(TokenFor(1, 7)));

  EXPECT_EQ(gate_.global_step(), 7);
  EXPECT_THAT(gate_.Activate(7), IsEmpty());
  EXPECT_THAT(gate_.Activate(9), IsEmpty());
  EXPECT_EQ(gate_.global_step(), 7);
}

TEST_F(CompatibleGateTest, CommitIssuesTheTokensOfAStepInOrderOfWaiting) {
  gate_.Activate(0);
  for (int worker : {2, 0, 1}) ASSERT_OK(Wait(worker, PassOf(worker, 1)));

  EXPECT_THAT(gate_.Commit(1, 0),
              IsOkAndHolds(ElementsAre(TokenFor(0, 1), TokenFor(1, 1))));

  EXPECT_EQ(gate_.global_step(), 1);
}

TEST_F(CompatibleGateTest, CommittingTheGlobalStepAgainIssuesNothing) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  ASSERT_OK(gate_.Commit(1, 0));
  for (int worker : {1, 2}) ASSERT_OK(Wait(worker, PassOf(worker, 1)));
  ASSERT_THAT(Wait(9, PassOf(3, 1)), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate_.Commit(1, 0), IsOkAndHolds(IsEmpty()));
}

TEST_F(CompatibleGateTest, CommitOfAnyStepButTheNextIsRefused) {
  gate_.Activate(4);

  for (int64_t step : {-1, 0, 3, 6}) {
    EXPECT_THAT(
        gate_.Commit(step, 0),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("commit 5")));
  }
  EXPECT_EQ(gate_.global_step(), 4);
}

TEST_F(CompatibleGateTest, EveryAnnouncementIsSelected) {
  gate_.Activate(3);

  absl::StatusOr<Gate::Announced> announced = gate_.Announce(PassOf(0, 1));

  ASSERT_OK(announced);
  EXPECT_EQ(announced->decision, Gate::Decision::kSelected);
  EXPECT_EQ(announced->global_step, 3);
  EXPECT_THAT(gate_.Members(), IsEmpty());
}

TEST_F(CompatibleGateTest, RetriedWaitIsGivenTheSameToken) {
  gate_.Activate(0);

  EXPECT_THAT(Wait(1, PassOf(0, 1)), IsOkAndHolds(ElementsAre(TokenFor(1, 0))));
  EXPECT_THAT(Wait(2, PassOf(0, 1)), IsOkAndHolds(ElementsAre(TokenFor(2, 0))));

  // There was one token, so the next pass and other workers wait.
  EXPECT_THAT(Wait(3, PassOf(0, 2)), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Wait(4, PassOf(1, 1)), IsOkAndHolds(IsEmpty()));
}

TEST_F(CompatibleGateTest, NewerWaitOfAWorkerCancelsTheOlder) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  ASSERT_OK(Wait(2, PassOf(0, 2)));

  EXPECT_THAT(Wait(3, PassOf(0, 2)),
              IsOkAndHolds(ElementsAre(CancelledFor(2))));
}

TEST_F(CompatibleGateTest, WithdrawnWaitLosesNoToken) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  ASSERT_OK(Wait(2, PassOf(1, 1)));
  ASSERT_OK(Wait(3, PassOf(2, 1)));
  gate_.Cancel(2);

  EXPECT_THAT(gate_.Commit(1, 0), IsOkAndHolds(ElementsAre(TokenFor(3, 1))));

  EXPECT_THAT(Wait(4, PassOf(3, 1)), IsOkAndHolds(ElementsAre(TokenFor(4, 1))));
}

TEST_F(CompatibleGateTest, TokenOfADeadWorkerGoesToTheNextInLine) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  ASSERT_OK(Wait(2, PassOf(1, 1)));

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_TRUE(expired.held_token);
  EXPECT_FALSE(expired.held_announcement);
  EXPECT_EQ(expired.step, 0);
  EXPECT_THAT(expired.answers, ElementsAre(TokenFor(2, 0)));
  EXPECT_FALSE(gate_.Expire(0, 1).held_token);
}

TEST_F(CompatibleGateTest, TokenOfAPassThatArrivedStaysUsedIfTheWorkerDies) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  ASSERT_OK(Wait(2, PassOf(1, 1)));
  gate_.FinishPass(PassOf(0, 1));  // repeated: its token came after this pass
  gate_.FinishPass(PassOf(0, 2));

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_FALSE(expired.held_token);
  EXPECT_THAT(expired.answers, IsEmpty());
}

TEST_F(CompatibleGateTest, PassOfAnotherTokenUsesNone) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1, 2)));
  gate_.FinishPass(PassOf(0, 1, 2));
  gate_.FinishPass(PassOf(0, 2, 1));
  gate_.FinishPass(PassOf(1, 2, 2));

  EXPECT_TRUE(gate_.Expire(0, 2).held_token);
}

TEST_F(CompatibleGateTest, DeadWorkerThatOnlyWaitedHeldNothing) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  ASSERT_OK(Wait(2, PassOf(1, 1)));

  const Gate::Expired expired = gate_.Expire(1, 1);

  EXPECT_FALSE(expired.held_token);
  EXPECT_THAT(expired.answers, ElementsAre(CancelledFor(2)));
}

TEST_F(CompatibleGateTest, ExpiryOfAnOldIncarnationSparesTheNewOne) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1, /*incarnation=*/2)));

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_FALSE(expired.held_token);
  EXPECT_THAT(Wait(2, PassOf(1, 1)), IsOkAndHolds(IsEmpty()));
}

TEST_F(CompatibleGateTest, NewestIncarnationIsThatOfTheNewestCall) {
  gate_.Activate(0);
  EXPECT_EQ(gate_.NewestIncarnation(0), 0U);

  ASSERT_OK(Wait(1, PassOf(0, 1, 4)));
  EXPECT_EQ(gate_.NewestIncarnation(0), 4U);
  ASSERT_OK(Wait(2, PassOf(0, 1, 5)));  // waits: there are no more tokens

  EXPECT_EQ(gate_.NewestIncarnation(0), 5U);
  EXPECT_EQ(gate_.NewestIncarnation(1), 0U);
  gate_.Expire(0, 5);
  EXPECT_EQ(gate_.NewestIncarnation(0), 5U);
}

TEST_F(CompatibleGateTest, ReplacedIncarnationIsRefused) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1, 2)));

  EXPECT_THAT(Wait(2, PassOf(0, 5, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CompatibleGateTest, FinishAnswersEveryWaitNowAndOnceTheTokensAreGone) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  ASSERT_OK(Wait(2, PassOf(1, 1)));

  EXPECT_THAT(gate_.Finish(), ElementsAre(FinishedFor(2)));

  EXPECT_THAT(Wait(3, PassOf(2, 1)), IsOkAndHolds(ElementsAre(FinishedFor(3))));
  EXPECT_THAT(gate_.Finish(), IsEmpty());
}

TEST_F(CompatibleGateTest, StepThatEndsAfterTheFinishIssuesNoTokens) {
  gate_.Activate(0);
  ASSERT_OK(Wait(1, PassOf(0, 1)));
  gate_.Finish();

  EXPECT_THAT(gate_.Commit(1, 0), IsOkAndHolds(IsEmpty()));

  EXPECT_EQ(gate_.global_step(), 1);
  EXPECT_THAT(Wait(2, PassOf(1, 1)), IsOkAndHolds(ElementsAre(FinishedFor(2))));
}

TEST_F(CompatibleGateTest, NoPassCanBeWatched) {
  gate_.Activate(0);

  EXPECT_THAT(gate_.Watch(1, PassOf(0, 1), kNow),
              StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_THAT(gate_.WaitingWorkers(), IsEmpty());
}

TEST_F(CompatibleGateTest, WaitsAreReportedWithWorkerAndBeginning) {
  gate_.Activate(0);
  for (int worker : {0, 2, 1}) ASSERT_OK(Wait(worker, PassOf(worker, 1)));

  std::vector<int> workers;
  for (const Gate::Waiting& waiting : gate_.WaitingWorkers()) {
    workers.push_back(waiting.worker);
    EXPECT_EQ(waiting.since, kNow);
  }

  EXPECT_THAT(workers, ElementsAre(2, 1));
}

TEST_F(CompatibleGateTest, NoWorkerIsReplaced) {
  const Gate::Replaced replaced = gate_.Replace(0, 0, 0);

  EXPECT_EQ(replaced.by, std::nullopt);
  EXPECT_EQ(replaced.step, gate_.global_step());
  EXPECT_THAT(replaced.answers, IsEmpty());
}

TEST_F(CompatibleGateTest, WhatAStepLacksOfTokensIsIssuedAtOnce) {
  gate_.Activate(0);
  for (int worker : {0, 1, 2}) ASSERT_OK(Wait(worker, PassOf(worker, 1)));

  EXPECT_THAT(gate_.SetReplicas(4, {}),
              ElementsAre(TokenFor(1, 0), TokenFor(2, 0)));
  EXPECT_THAT(gate_.SetReplicas(1, {}), IsEmpty());

  ASSERT_OK(gate_.Commit(1, 0));
  EXPECT_THAT(gate_.tokens(), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::server
