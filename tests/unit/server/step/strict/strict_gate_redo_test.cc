// The step at hand begins anew: a server, or this gate, has been away.

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
using ::lockstep::testing::SlotTokenFor;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Decision = Gate::Decision;

const absl::Time kNow = absl::FromUnixSeconds(1000);
constexpr int64_t kStep = 4;
constexpr int64_t kAttempt = 1000;

Pass PassOfSlot(int worker, int slot = 0) {
  return {worker, 1, kStep, kStep + 1, slot};
}

// A gate that has come up in the midst of step 4.
StrictGate NewGate(int replicas_to_aggregate, int total_num_replicas) {
  return StrictGate({replicas_to_aggregate, total_num_replicas});
}

TEST(StrictGateRedoTest, MembersOfALivingGatePushAgain) {
  StrictGate gate = NewGate(2, 3);
  gate.Activate(kStep);
  for (int worker : {2, 1, 0}) ASSERT_OK(gate.Announce(PassOfSlot(worker)));
  for (int worker : {0, 1, 2}) {
    const int64_t pushed = worker == 0 ? 0 : 1;
    ASSERT_THAT(gate.Wait(worker, PassOfSlot(worker), pushed, kNow),
                IsOkAndHolds(IsEmpty()));
  }

  EXPECT_THAT(gate.Redo(kAttempt),
              UnorderedElementsAre(RedoFor(1, kAttempt), RedoFor(2, kAttempt)));

  EXPECT_THAT(gate.Redo(kAttempt), IsEmpty());
  EXPECT_THAT(gate.Members(), ElementsAre(1, 2));
  EXPECT_THAT(gate.Commit(kStep + 1, kAttempt),
              IsOkAndHolds(ElementsAre(TokenFor(0, kStep + 1))));
}

TEST(StrictGateRedoTest, NewGateRecallsWorkersThatHadAnnounced) {
  StrictGate gate = NewGate(2, 3);
  gate.Activate(kStep);
  gate.Redo(kAttempt);

  EXPECT_THAT(gate.Wait(2, PassOfSlot(2), 1, kNow),
              IsOkAndHolds(ElementsAre(RedoFor(2, kAttempt))));
  EXPECT_THAT(gate.Wait(0, PassOfSlot(0), 0, kNow),
              IsOkAndHolds(ElementsAre(RedoFor(0, kAttempt))));
  EXPECT_THAT(gate.Wait(1, PassOfSlot(1), 0, kNow), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate.Members(), ElementsAre(0, 2));
}

TEST(StrictGateRedoTest, WaitOfAWorkerThatTakesPartNoMoreIsNoAnnouncement) {
  StrictGate gate = NewGate(3, 3);
  gate.Activate(kStep);
  ASSERT_OK(gate.Announce(PassOfSlot(2)));
  ASSERT_THAT(gate.Wait(7, PassOfSlot(2), 1, kNow), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate.SetReplicas(2, {0, 1}), ElementsAre(CancelledFor(7)));
  EXPECT_THAT(gate.Redo(kAttempt), IsEmpty());

  for (int worker : {0, 1}) ASSERT_OK(gate.Announce(PassOfSlot(worker)));
  EXPECT_THAT(gate.Members(), ElementsAre(0, 1));
}

TEST(StrictGateRedoTest, NewGateSelectsWorkersThatAreNotThatFar) {
  StrictGate gate = NewGate(2, 2);
  gate.Activate(kStep);
  gate.Redo(kAttempt);

  const Pass before{0, 1, kStep - 1, kStep, 0};
  const auto token = gate.Wait(7, before, 1, kNow);
  ASSERT_THAT(token, IsOkAndHolds(ElementsAre(TokenFor(7, kStep))));
  EXPECT_EQ((*token)[0].attempt, 0);
  EXPECT_EQ((*token)[0].selected_attempt, kAttempt);
  EXPECT_THAT(gate.Wait(8, PassOfSlot(1), 1, kNow),
              IsOkAndHolds(ElementsAre(RedoFor(8, kAttempt))));

  EXPECT_OK(gate.Commit(kStep + 1, kAttempt));
}

TEST(StrictGateRedoTest, WorkerThatAsksTooLateLearnsThatAnotherPassCounted) {
  StrictGate gate = NewGate(1, 2);
  gate.Activate(kStep);
  gate.Redo(kAttempt);
  ASSERT_OK(gate.Wait(0, PassOfSlot(0), 0, kNow));
  ASSERT_OK(gate.Commit(kStep + 1, kAttempt));
  ASSERT_OK(gate.Announce({0, 1, kStep + 1, kStep + 2, 0}));
  ASSERT_OK(gate.Commit(kStep + 2, 1));

  // It was selected and pushed, all of which was lost with the gate before.
  const auto passed_over = gate.Wait(1, PassOfSlot(1), 1, kNow);
  const auto counted = gate.Wait(0, {0, 1, kStep + 1, kStep + 2, 0}, 1, kNow);

  ASSERT_THAT(passed_over, IsOkAndHolds(ElementsAre(TokenFor(1, kStep + 2))));
  EXPECT_TRUE((*passed_over)[0].not_needed);
  ASSERT_THAT(counted, IsOkAndHolds(ElementsAre(TokenFor(0, kStep + 2))));
  EXPECT_FALSE((*counted)[0].not_needed);
}

TEST(StrictGateRedoTest, OfStepsBeforeItsOwnAGateSaysNothing) {
  StrictGate gate = NewGate(1, 2);
  gate.Activate(kStep);

  const auto token = gate.Wait(0, {0, 1, kStep - 1, kStep, 0}, 1, kNow);

  ASSERT_THAT(token, IsOkAndHolds(ElementsAre(TokenFor(0, kStep))));
  EXPECT_FALSE((*token)[0].not_needed);
}

TEST(StrictGateRedoTest, SharesOfAStepAreComputedOnceMore) {
  StrictGate gate = NewGate(2, 1);
  gate.Activate(kStep);
  gate.Redo(kAttempt);

  const auto token = gate.Wait(7, PassOfSlot(0, 1), 1, kNow);

  ASSERT_THAT(token, IsOkAndHolds(ElementsAre(TokenFor(7, kStep))));
  EXPECT_EQ((*token)[0].slot, 0);
}

TEST(StrictGateRedoTest, DelayedAnnouncementIsNoShareOfTheNewAttempt) {
  StrictGate gate = NewGate(2, 1);
  gate.Activate(kStep);
  gate.Redo(kAttempt);
  ASSERT_OK(
      gate.Announce(PassOfSlot(0, 0)));  // sent to the gate before this one

  EXPECT_THAT(gate.Wait(7, PassOfSlot(0, 1), 1, kNow),
              IsOkAndHolds(ElementsAre(SlotTokenFor(7, kStep, 0))));

  Pass anew = PassOfSlot(0, 0);
  anew.pass += 1;
  ASSERT_OK(gate.Announce(anew));
  EXPECT_THAT(gate.Wait(8, anew, kAttempt, kNow),
              IsOkAndHolds(ElementsAre(SlotTokenFor(8, kStep, 1))));
}

TEST(StrictGateRedoTest, NextStepIsAsAnyOther) {
  StrictGate gate = NewGate(1, 2);
  gate.Activate(kStep);
  gate.Redo(kAttempt);
  ASSERT_OK(gate.Wait(2, PassOfSlot(0), 1, kNow));
  ASSERT_OK(gate.Commit(kStep + 1, kAttempt));

  const Pass unannounced{1, 1, kStep + 1, kStep + 2, 0};
  EXPECT_THAT(gate.Wait(3, unannounced, 0, kNow), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate.Members(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
