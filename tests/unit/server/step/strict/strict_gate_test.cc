#include "server/step/strict/strict_gate.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"
#include "tests/unit/server/step/strict/strict_gate_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::CancelledFor;
using ::lockstep::testing::FinishedFor;
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

MATCHER_P3(SelectedTokenFor, ticket, step, attempt, "is in the set already") {
  return ExplainMatchResult(TokenFor(ticket, step), arg, result_listener) &&
         arg.selected_attempt == attempt;
}

class StrictGateTest : public testing::StrictGateFixture {};

TEST_F(StrictGateTest, FirstAnnouncementsAreTheSetWhateverTheOrder) {
  std::vector<int> order = {0, 1, 2};
  do {
    StrictGate gate({.replicas_to_aggregate = 2, .total_num_replicas = 3});
    gate.Activate(0);

    EXPECT_THAT(gate.Announce(PassOfStep(order[0])),
                IsOkAndHolds(SelectedFor(1)));
    EXPECT_THAT(gate.Announce(PassOfStep(order[1])),
                IsOkAndHolds(SelectedFor(1)));
    EXPECT_THAT(gate.Announce(PassOfStep(order[2])),
                IsOkAndHolds(Says(Decision::kNotNeeded)));

    EXPECT_THAT(gate.Members(), UnorderedElementsAre(order[0], order[1]));
    EXPECT_THAT(gate.Members(), ::testing::BeginEndDistanceIs(2));
    EXPECT_LT(gate.Members()[0], gate.Members()[1]);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(StrictGateTest, RepeatedAnnouncementCountsOnce) {
  Announce(0, Decision::kSelected);
  Announce(0, Decision::kSelected);
  Announce(1, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);

  Announce(0, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);

  EXPECT_THAT(gate_.Members(), ElementsAre(0, 1));
}

TEST_F(StrictGateTest, AnnouncementForACommittedStepIsTooLate) {
  Announce(0, Decision::kSelected);
  Announce(1, Decision::kSelected);
  ASSERT_OK(gate_.Commit(1, 1));

  absl::StatusOr<Gate::Announced> late = gate_.Announce(PassOfStep(2));

  ASSERT_OK(late);
  EXPECT_EQ(late->decision, Decision::kTooLate);
  EXPECT_EQ(late->global_step, 1);
  EXPECT_THAT(gate_.Members(), IsEmpty());
}

TEST_F(StrictGateTest, WorkerThatNamesAStepToComeMustRegisterAgain) {
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("local_step 1 has not begun; the global step is 0"));

  EXPECT_THAT(gate_.Announce(PassOfStep(0, 1)), refused);
  EXPECT_THAT(gate_.Wait(1, PassOfStep(0, 1), 1, kNow), refused);
  EXPECT_THAT(gate_.Watch(2, PassOfStep(0, 1), kNow), refused);

  EXPECT_THAT(gate_.Members(), IsEmpty());
  EXPECT_THAT(gate_.WaitingWorkers(), IsEmpty());
}

TEST_F(StrictGateTest, WorkersAndSlotsOutOfRangeAreRefused) {
  for (const Pass& pass : {Pass{-1, 1, 0, 1, 0}, Pass{3, 1, 0, 1, 0},
                           Pass{0, 1, 0, 1, 1}, Pass{0, 1, 0, 1, -1}}) {
    EXPECT_THAT(gate_.Announce(pass),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(gate_.Wait(1, pass, 0, kNow),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }

  EXPECT_THAT(gate_.Members(), IsEmpty());
  EXPECT_THAT(gate_.WaitingWorkers(), IsEmpty());
}

TEST_F(StrictGateTest, NothingIsAnnouncedBeforeTheFirstStepBegins) {
  StrictGate gate({.replicas_to_aggregate = 1, .total_num_replicas = 1});

  EXPECT_THAT(gate.Announce(PassOfStep(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  gate.Activate(0);
  EXPECT_THAT(gate.Announce(PassOfStep(0)), IsOkAndHolds(SelectedFor(1)));
}

TEST_F(StrictGateTest, ActivateAnswersEarlierWaits) {
  StrictGate gate({.replicas_to_aggregate = 2, .total_num_replicas = 2});
  ASSERT_THAT(gate.Wait(7, FirstWait(0), 0, kNow), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate.Activate(40), ElementsAre(TokenFor(7, 40)));

  EXPECT_EQ(gate.global_step(), 40);
}

TEST_F(StrictGateTest, ActivatingAgainChangesNothing) {
  Announce(0, Decision::kSelected);

  EXPECT_THAT(gate_.Activate(0), IsEmpty());
  EXPECT_THAT(gate_.Activate(9), IsEmpty());

  EXPECT_EQ(gate_.global_step(), 0);
  EXPECT_THAT(gate_.Members(), ElementsAre(0));
}

TEST_F(StrictGateTest, FirstTokenIsFree) {
  EXPECT_THAT(gate_.Wait(1, FirstWait(0), 0, kNow),
              IsOkAndHolds(ElementsAre(TokenFor(1, 0))));
}

TEST_F(StrictGateTest, NoWorkerGetsATokenBeforeTheCommit) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);
  WaitAs(0, 1);
  WaitAs(1, 1);
  WaitAs(2, 0);

  absl::StatusOr<std::vector<Gate::Answer>> answers = gate_.Commit(1, 1);

  EXPECT_THAT(answers, IsOkAndHolds(UnorderedElementsAre(
                           TokenFor(0, 1), TokenFor(1, 1), TokenFor(2, 1))));
  EXPECT_EQ(gate_.global_step(), 1);
}

TEST_F(StrictGateTest, CommittingTheGlobalStepAgainChangesNothing) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  ASSERT_OK(gate_.Commit(1, 1));
  Announce(2, Decision::kSelected, 1);

  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(IsEmpty()));

  EXPECT_EQ(gate_.global_step(), 1);
  EXPECT_THAT(gate_.Members(), ElementsAre(2));
}

TEST_F(StrictGateTest, CommitOfAnIncompleteSetIsRefused) {
  Announce(0, Decision::kSelected);

  EXPECT_THAT(gate_.Commit(1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("of step 1 with 1 of 2 gradients")));

  EXPECT_EQ(gate_.global_step(), 0);
}

TEST_F(StrictGateTest, CommitOfAnAttemptGivenUpIsRefused) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  Announce(2, Decision::kNotNeeded);
  gate_.Expire(0, 1);

  EXPECT_THAT(gate_.Commit(1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(gate_.Commit(1, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_EQ(gate_.global_step(), 0);
  EXPECT_OK(gate_.Commit(1, 2));
}

TEST_F(StrictGateTest, CommitOfAnyStepButTheNextIsRefused) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);

  for (int64_t step : {-1, 2, 100}) {
    EXPECT_THAT(gate_.Commit(step, 1),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("of step 1")));
  }
  EXPECT_EQ(gate_.global_step(), 0);
}

TEST(NoBackupsTest, TokenMakesItsWorkerAMember) {
  StrictGate gate({.replicas_to_aggregate = 2, .total_num_replicas = 2});
  gate.Activate(3);

  EXPECT_THAT(gate.Wait(0, FirstWait(0), 0, kNow),
              IsOkAndHolds(ElementsAre(SelectedTokenFor(0, 3, 1))));
  EXPECT_THAT(gate.Wait(1, FirstWait(1), 0, kNow),
              IsOkAndHolds(ElementsAre(SelectedTokenFor(1, 3, 1))));

  EXPECT_THAT(gate.Members(), ElementsAre(0, 1));
  ASSERT_THAT(gate.Wait(2, {0, 1, 3, 1, 0}, 1, kNow), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(gate.Commit(4, 1),
              IsOkAndHolds(ElementsAre(SelectedTokenFor(2, 4, 1))));
  EXPECT_THAT(gate.Members(), ElementsAre(0));
}

TEST(NoBackupsTest, RepeatedWaitIsGivenTheSameToken) {
  StrictGate gate({.replicas_to_aggregate = 2, .total_num_replicas = 2});
  gate.Activate(0);

  for (int ticket : {5, 6}) {
    EXPECT_THAT(gate.Wait(ticket, FirstWait(0), 0, kNow),
                IsOkAndHolds(ElementsAre(SelectedTokenFor(ticket, 0, 1))));
  }

  EXPECT_THAT(gate.Members(), ElementsAre(0));
}

TEST(NoBackupsTest, SuccessorOfADeadWorkerIsOfTheNewAttempt) {
  StrictGate gate({.replicas_to_aggregate = 2, .total_num_replicas = 2});
  gate.Activate(0);
  for (int worker : {0, 1}) {
    ASSERT_OK(gate.Wait(worker, FirstWait(worker), 0, kNow));
  }
  gate.Expire(0, 1);

  EXPECT_THAT(gate.Members(), ElementsAre(1));
  EXPECT_THAT(gate.Wait(7, FirstWait(0, 2), 0, kNow),
              IsOkAndHolds(ElementsAre(SelectedTokenFor(7, 0, 2))));
  EXPECT_THAT(gate.Wait(8, {1, 1, 0, 1, 0}, 1, kNow),
              IsOkAndHolds(ElementsAre(RedoFor(8, 2))));
}

TEST_F(StrictGateTest, TokenSaysWhichAttemptTheStepCameOf) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  gate_.Expire(0, 1);
  Announce(2, Decision::kSelected);
  WaitAs(1, 2);

  const auto answers = gate_.Commit(1, 2);

  ASSERT_THAT(answers, IsOkAndHolds(ElementsAre(TokenFor(1, 1))));
  EXPECT_EQ((*answers)[0].attempt, 2);
  EXPECT_EQ((*answers)[0].selected_attempt, 0);
}

TEST_F(StrictGateTest, NewerWaitOfAWorkerCancelsTheOlder) {
  Announce(0, Decision::kSelected);
  ASSERT_THAT(gate_.Wait(1, PassOfStep(0), 1, kNow), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate_.Wait(2, PassOfStep(0), 1, kNow),
              IsOkAndHolds(ElementsAre(CancelledFor(1))));

  EXPECT_THAT(gate_.WaitingWorkers(), ::testing::SizeIs(1));
}

TEST_F(StrictGateTest, DelayedWaitOfAnEarlierPassDisturbsNoOther) {
  ASSERT_OK(gate_.Wait(1, FirstWait(0), 0, kNow));
  Announce(0, Decision::kSelected);
  WaitAs(0, 1);

  EXPECT_THAT(gate_.Wait(9, FirstWait(0), 0, kNow),
              IsOkAndHolds(ElementsAre(CancelledFor(9))));

  EXPECT_THAT(gate_.WaitingWorkers(), ::testing::SizeIs(1));
}

TEST_F(StrictGateTest, RepeatedWaitIsGivenTheSameToken) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  ASSERT_OK(gate_.Commit(1, 1));

  EXPECT_THAT(gate_.Wait(1, PassOfStep(0), 1, kNow),
              IsOkAndHolds(ElementsAre(TokenFor(1, 1))));
  EXPECT_THAT(gate_.Wait(2, PassOfStep(0), 1, kNow),
              IsOkAndHolds(ElementsAre(TokenFor(2, 1))));
}

TEST_F(StrictGateTest, WithdrawnWaitIsNotAnswered) {
  for (int worker : {0, 1}) Announce(worker, Decision::kSelected);
  WaitAs(0, 1);
  WaitAs(1, 1);

  gate_.Cancel(0);
  gate_.Cancel(77);

  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(ElementsAre(TokenFor(1, 1))));
}

TEST_F(StrictGateTest, WaitsAreReportedWithTheirBeginning) {
  Announce(1, Decision::kSelected);
  WaitAs(1, 1);

  const std::vector<Gate::Waiting> waiting = gate_.WaitingWorkers();

  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].worker, 1);
  EXPECT_EQ(waiting[0].since, kNow);
}

TEST_F(StrictGateTest, FinishAnswersEveryWaitNowAndLater) {
  Announce(0, Decision::kSelected);
  WaitAs(0, 1);

  EXPECT_THAT(gate_.Finish(), ElementsAre(FinishedFor(0)));

  EXPECT_THAT(gate_.Wait(4, FirstWait(1), 0, kNow),
              IsOkAndHolds(ElementsAre(FinishedFor(4))));
  Announce(1, Decision::kTooLate);
  EXPECT_THAT(gate_.Finish(), IsEmpty());
}

TEST_F(StrictGateTest, AStepThatTakesFewerGradientsIsHelpedByThat) {
  StrictGate gate({.replicas_to_aggregate = 2, .total_num_replicas = 2});
  gate.Activate(0);
  ASSERT_THAT(gate.Announce(PassOfStep(1)), IsOkAndHolds(SelectedFor(1)));
  ASSERT_OK(gate.Wait(7, PassOfStep(1), 1, kNow));

  EXPECT_THAT(gate.SetReplicas(1, {}), IsEmpty());
  EXPECT_THAT(gate.Redo(5), ElementsAre(RedoFor(7, 5)));
  EXPECT_THAT(gate.Commit(1, 5), IsOkAndHolds(IsEmpty()));
}

TEST_F(StrictGateTest, AStepThatTakesMoreGradientsWantsTheNextAnnouncement) {
  for (int worker : {2, 0}) Announce(worker, Decision::kSelected);
  Announce(1, Decision::kNotNeeded);
  WaitAs(1, /*attempt=*/0);
  gate_.SetReplicas(3, {});

  EXPECT_THAT(gate_.Redo(4), ElementsAre(RedoFor(1, 4)));
  EXPECT_THAT(gate_.Members(), ElementsAre(0, 1, 2));
}

TEST_F(StrictGateTest, WorkersThatTakePartNoMoreAreRefused) {
  Announce(1, Decision::kSelected);
  gate_.SetReplicas(1, {0, 5});

  EXPECT_THAT(gate_.Members(), IsEmpty());
  EXPECT_THAT(gate_.Announce(PassOfStep(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("none of the 2 workers that take part now")));
  Announce(5, Decision::kSelected);
}

}  // namespace
}  // namespace lockstep::server
