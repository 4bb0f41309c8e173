#include "server/step/strict/shared_gate.h"

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
using ::lockstep::testing::RedoFor;
using ::lockstep::testing::SlotTokenFor;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Decision = Gate::Decision;

constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
const absl::Time kNow = absl::FromUnixSeconds(1000);

MATCHER_P(Says, decision, "says the decision") {
  return arg.decision == decision;
}
MATCHER_P(SelectedFor, attempt, "is selected") {
  return arg.decision == Decision::kSelected && arg.attempt == attempt;
}

Pass NumberedPass(int worker, int64_t pass, int number, int64_t step = 0) {
  return {worker, 1, step, pass, number};
}
Pass FirstWait(int worker) { return {worker, 1, -1, 0, 0}; }

// Steps of two numbers, three workers.
class SharedGateTest : public ::testing::Test {
 protected:
  SharedGateTest() { EXPECT_THAT(gate_.Activate(0), IsEmpty()); }

  // Files a wait under the worker's number.
  std::vector<Gate::Answer> Wait(const Pass& pass, int64_t attempt = 0) {
    const auto answers = gate_.Wait(pass.worker, pass, attempt, kNow);
    EXPECT_OK(answers);
    return answers.value_or(std::vector<Gate::Answer>());
  }
  std::vector<Gate::Answer> Watch(uint64_t ticket, const Pass& pass) {
    const auto answers = gate_.Watch(ticket, pass, kNow);
    EXPECT_OK(answers);
    return answers.value_or(std::vector<Gate::Answer>());
  }
  void Announce(const Pass& pass, Decision expected = Decision::kSelected) {
    EXPECT_THAT(gate_.Announce(pass), IsOkAndHolds(Says(expected)));
  }

  SharedGate gate_{{.numbers = 2, .total_num_replicas = 3}};
};

TEST_F(SharedGateTest, WorkersTakeOneNumberAfterTheOther) {
  EXPECT_THAT(Wait(FirstWait(2)), ElementsAre(SlotTokenFor(2, 0, 0)));
  Announce(NumberedPass(2, 1, 0));

  EXPECT_THAT(Wait(NumberedPass(2, 1, 0), 1),
              ElementsAre(SlotTokenFor(2, 0, 1)));
}

TEST_F(SharedGateTest, TokenThatWasLostIsGivenAgain) {
  Wait(FirstWait(0));
  Wait(FirstWait(1));

  EXPECT_THAT(Wait(FirstWait(0)), ElementsAre(SlotTokenFor(0, 0, 0)));
}

TEST_F(SharedGateTest, OneWorkerMakesTheWholeStep) {
  Wait(FirstWait(0));
  Announce(NumberedPass(0, 1, 0));
  Wait(NumberedPass(0, 1, 0), 1);
  Announce(NumberedPass(0, 2, 1));
  EXPECT_THAT(Wait(NumberedPass(0, 2, 1), 1), IsEmpty());  // all are done

  EXPECT_THAT(gate_.Commit(1, 1),
              IsOkAndHolds(ElementsAre(SlotTokenFor(0, 1, 0))));
  EXPECT_EQ(gate_.global_step(), 1);
}

TEST_F(SharedGateTest, IdleWorkerRepeatsANumberAndTheFirstResultEndsTheOther) {
  Wait(FirstWait(0));
  Wait(FirstWait(1));
  EXPECT_THAT(Watch(10, NumberedPass(0, 1, 0)), IsEmpty());
  Announce(NumberedPass(1, 1, 1));
  EXPECT_THAT(Wait(NumberedPass(1, 1, 1), 1),
              ElementsAre(SlotTokenFor(1, 0, 0)));
  Announce(NumberedPass(1, 2, 0));

  // Worker 0 learns that its pass is in vain, and drops it.
  EXPECT_THAT(Wait(NumberedPass(1, 2, 0), 1), ElementsAre(TokenFor(10, 0)));
  Announce(NumberedPass(0, 1, 0), Decision::kNotNeeded);
  EXPECT_THAT(Wait(NumberedPass(0, 1, 0)), IsEmpty());
}

TEST_F(SharedGateTest, GradientThatCameSecondIsReportedAsNotNeeded) {
  Wait(FirstWait(0));
  Wait(FirstWait(1));
  Wait(FirstWait(2));  // number 0 once more
  Announce(NumberedPass(0, 1, 0));
  Announce(NumberedPass(2, 1, 0));
  EXPECT_FALSE(Wait(NumberedPass(2, 1, 0), 1).at(0).not_needed);

  EXPECT_TRUE(Wait(NumberedPass(0, 1, 0), 1).at(0).not_needed);
}

// The answer to the first wait was lost.
TEST_F(SharedGateTest, RepeatedWaitOfAPassThatCountedIsNotReportedAsNotNeeded) {
  Wait(FirstWait(0));
  Announce(NumberedPass(0, 1, 0));
  EXPECT_FALSE(Wait(NumberedPass(0, 1, 0), 1).at(0).not_needed);
  EXPECT_FALSE(Wait(NumberedPass(0, 1, 0), 1).at(0).not_needed);
}

TEST_F(SharedGateTest, EndOfTheStepEndsThePassesThatComputeIt) {
  Wait(FirstWait(0));
  EXPECT_THAT(Watch(10, NumberedPass(0, 1, 0)), IsEmpty());

  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(ElementsAre(TokenFor(10, 1))));
  Announce(NumberedPass(0, 1, 0), Decision::kTooLate);
  EXPECT_THAT(Wait(NumberedPass(0, 1, 0)), ElementsAre(SlotTokenFor(0, 1, 0)));
}

TEST_F(SharedGateTest, NumberOfADeadWorkerGoesOnInTheSameAttempt) {
  Wait(FirstWait(0));
  Wait(FirstWait(1));
  Announce(NumberedPass(0, 1, 0));

  const Gate::Expired expired = gate_.Expire(0, 1);

  EXPECT_TRUE(expired.held_token);
  EXPECT_FALSE(expired.held_announcement);
  EXPECT_EQ(expired.attempt, 1);
  EXPECT_FALSE(gate_.Counts(NumberedPass(0, 1, 0)));
  EXPECT_THAT(Wait(FirstWait(2)), ElementsAre(SlotTokenFor(2, 0, 0)));
  EXPECT_THAT(gate_.Announce(NumberedPass(0, 1, 0)), StatusIs(kRefused));
}

TEST_F(SharedGateTest, WorkersThatWaitGetTheNumberOfADeadOne) {
  SharedGate gate({.numbers = 1, .total_num_replicas = 5});
  gate.Activate(0);
  for (int worker = 0; worker < 3; ++worker) {
    ASSERT_OK(gate.Wait(worker, FirstWait(worker), 0, kNow));
  }
  EXPECT_THAT(gate.Wait(3, FirstWait(3), 0, kNow), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate.Expire(1, 1).answers, ElementsAre(SlotTokenFor(3, 0, 0)));
}

TEST_F(SharedGateTest, NewAttemptAsksForTheGradientsThatWorkersStillHave) {
  Wait(FirstWait(0));
  Announce(NumberedPass(0, 1, 0));
  Wait(NumberedPass(0, 1, 0), 1);
  Announce(NumberedPass(0, 2, 1));
  EXPECT_THAT(Wait(NumberedPass(0, 2, 1), 1), IsEmpty());

  EXPECT_THAT(gate_.Redo(4), ElementsAre(RedoFor(0, 4)));

  // Number 0 has to be computed again.
  EXPECT_THAT(Wait(NumberedPass(0, 2, 1), 4),
              ElementsAre(SlotTokenFor(0, 0, 0)));
  EXPECT_THAT(gate_.Announce(NumberedPass(0, 3, 0)),
              IsOkAndHolds(SelectedFor(4)));
  EXPECT_THAT(gate_.Commit(1, 1), StatusIs(kRefused));
  EXPECT_OK(gate_.Commit(1, 4));
}

TEST_F(SharedGateTest, PassThatIsComputedGoesOnInTheNewAttempt) {
  Wait(FirstWait(0));

  EXPECT_THAT(gate_.Redo(2), IsEmpty());

  EXPECT_THAT(gate_.Announce(NumberedPass(0, 1, 0)),
              IsOkAndHolds(SelectedFor(2)));
  EXPECT_THAT(Wait(NumberedPass(0, 1, 0), 2),
              ElementsAre(SlotTokenFor(0, 0, 1)));
  EXPECT_THAT(gate_.Redo(2), IsEmpty());  // it is the one at hand
}

TEST_F(SharedGateTest, GradientOfAnOlderAttemptIsNoResult) {
  Wait(FirstWait(0));
  Announce(NumberedPass(0, 1, 0));
  gate_.Redo(2);

  EXPECT_THAT(Wait(NumberedPass(0, 1, 0), 1), ElementsAre(RedoFor(0, 2)));
  EXPECT_THAT(Wait(NumberedPass(0, 1, 0), 1), ElementsAre(RedoFor(0, 2)));
}

TEST_F(SharedGateTest, OnlyAnnouncedGradientsCount) {
  Wait(FirstWait(0));
  EXPECT_FALSE(gate_.Counts(NumberedPass(0, 1, 0)));
  Announce(NumberedPass(0, 1, 0));
  EXPECT_TRUE(gate_.Counts(NumberedPass(0, 1, 0)));
  EXPECT_FALSE(gate_.Counts(NumberedPass(1, 1, 0)));
  EXPECT_TRUE(gate_.Counts(NumberedPass(1, 1, 0, /*step=*/3)));  // not at hand
}

TEST_F(SharedGateTest, DelayedCallsChangeNothing) {
  Wait(FirstWait(0));
  Announce(NumberedPass(0, 1, 0));
  Wait(NumberedPass(0, 1, 0), 1);

  Announce(NumberedPass(0, 1, 0), Decision::kTooLate);
  EXPECT_THAT(gate_.Wait(9, FirstWait(0), 0, kNow),
              IsOkAndHolds(ElementsAre(CancelledFor(9))));
}

TEST_F(SharedGateTest, OfTwoWaitsOfAWorkerTheOlderIsCancelled) {
  EXPECT_THAT(Watch(10, NumberedPass(0, 1, 0)), IsEmpty());

  EXPECT_THAT(Watch(11, NumberedPass(0, 2, 0)), ElementsAre(CancelledFor(10)));

  gate_.Cancel(11);
  EXPECT_THAT(gate_.Finish(), IsEmpty());
}

TEST_F(SharedGateTest, WorkersThatLeaveGiveTheirNumbersBack) {
  Wait(FirstWait(0));
  Watch(10, NumberedPass(0, 1, 0));

  EXPECT_THAT(gate_.SetReplicas(1, {1, 4}), ElementsAre(CancelledFor(10)));

  EXPECT_THAT(gate_.Wait(0, FirstWait(0), 0, kNow),
              StatusIs(kRefused, HasSubstr("register again")));
  EXPECT_THAT(Wait(FirstWait(4)), ElementsAre(SlotTokenFor(4, 0, 0)));
  EXPECT_THAT(Wait(FirstWait(1)), ElementsAre(SlotTokenFor(1, 0, 1)));
}

TEST_F(SharedGateTest, NumbersThatThereAreNotAreRefused) {
  for (const int number : {-1, 2}) {
    EXPECT_THAT(gate_.Announce(NumberedPass(0, 1, number)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not below 2")));
  }
  EXPECT_THAT(gate_.Announce(NumberedPass(0, 1, 0, /*step=*/1)),
              StatusIs(kRefused, HasSubstr("has not begun")));
}

TEST_F(SharedGateTest, NothingIsHandedOutBeforeTheShardIsOpen) {
  SharedGate gate({.numbers = 2, .total_num_replicas = 1});
  EXPECT_THAT(gate.Wait(5, FirstWait(0), 0, kNow), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(gate.Announce(NumberedPass(0, 1, 0)), StatusIs(kRefused));

  EXPECT_THAT(gate.Activate(3), ElementsAre(SlotTokenFor(5, 3, 0)));
  EXPECT_THAT(gate.Activate(9), IsEmpty());
  EXPECT_EQ(gate.global_step(), 3);
}

TEST_F(SharedGateTest, EndOfTrainingNamesItsStepIfTheShardWasOpen) {
  SharedGate gate({.numbers = 2, .total_num_replicas = 1});
  ASSERT_THAT(gate.Finish(), IsEmpty());
  auto answers = gate.Wait(5, FirstWait(0), 0, kNow);
  ASSERT_THAT(answers, IsOkAndHolds(ElementsAre(FinishedFor(5))));
  EXPECT_EQ((*answers)[0].step, 0);

  gate.Activate(3);
  answers = gate.Wait(6, FirstWait(0), 0, kNow);
  ASSERT_THAT(answers, IsOkAndHolds(ElementsAre(FinishedFor(6))));
  EXPECT_EQ((*answers)[0].step, 3);
}

TEST_F(SharedGateTest, EndOfTrainingEndsAllWaitsUntilItIsTakenBack) {
  EXPECT_THAT(gate_.Finish(), IsEmpty());
  EXPECT_THAT(Wait(FirstWait(0)), ElementsAre(FinishedFor(0)));
  Announce(NumberedPass(0, 1, 0), Decision::kTooLate);

  gate_.Reopen();

  EXPECT_THAT(Wait(FirstWait(0)), ElementsAre(SlotTokenFor(0, 0, 0)));
}

TEST_F(SharedGateTest, SlowWorkerIsNotReplacedButItsNumberIsRepeated) {
  Wait(FirstWait(0));
  Announce(NumberedPass(0, 1, 0));

  EXPECT_FALSE(gate_.Replace(0, 0, 1).by.has_value());
  EXPECT_THAT(gate_.Members(), IsEmpty());
  EXPECT_THAT(Wait(FirstWait(1)), ElementsAre(SlotTokenFor(1, 0, 1)));
  EXPECT_THAT(Wait(FirstWait(2)), ElementsAre(SlotTokenFor(2, 0, 0)));
}

TEST_F(SharedGateTest, ReportsNameTheWorkersThatWait) {
  SharedGate gate({.numbers = 1, .total_num_replicas = 2});
  ASSERT_OK(gate.Wait(7, FirstWait(1), 0, kNow));

  ASSERT_EQ(gate.WaitingWorkers().size(), 1u);
  EXPECT_EQ(gate.WaitingWorkers()[0].worker, 1);
  EXPECT_EQ(gate.NewestIncarnation(1), 1u);
}

// Steps of five numbers, which the chief hands out in blocks.
class SharedGateBlockTest : public SharedGateTest {
 protected:
  SharedGateBlockTest() { EXPECT_THAT(blocks_.Activate(0), IsEmpty()); }

  static Pass BlockOf(int worker, int64_t pass, int first, int block) {
    return {worker, 1, 0, pass, first, block};
  }
  Gate::Answer Take(const Pass& pass, int64_t attempt = 0) {
    const auto answers = blocks_.Wait(pass.worker, pass, attempt, kNow);
    EXPECT_OK(answers);
    return answers->empty() ? Gate::Answer{.slot = -1} : answers->front();
  }

  SharedGate blocks_{{.numbers = 5, .total_num_replicas = 3, .block = 2}};
};

TEST_F(SharedGateBlockTest, TokenNamesTheFirstNumberAndTheSize) {
  for (int i = 0; i < 3; ++i) {
    const Gate::Answer token = Take(FirstWait(i));
    EXPECT_EQ(token.slot, 2 * i);
    EXPECT_EQ(token.block, 2);
  }
  EXPECT_THAT(blocks_.Announce(BlockOf(2, 1, 4, 2)),
              IsOkAndHolds(SelectedFor(1)));
  EXPECT_TRUE(blocks_.Counts(BlockOf(2, 1, 4, 2)));
  EXPECT_FALSE(blocks_.Counts(BlockOf(1, 1, 2, 2)));
  // The last block is done; 0 and 2 are out.
  EXPECT_EQ(Take(BlockOf(2, 1, 4, 2), 1).slot, 0);
}

TEST_F(SharedGateBlockTest, NumberWithinABlockIsRefused) {
  EXPECT_THAT(
      blocks_.Announce(BlockOf(0, 1, 3, 2)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the first")));
}

TEST_F(SharedGateBlockTest, BlockOfAnotherSizeIsNotNeeded) {
  Take(FirstWait(0));
  Take(FirstWait(1));
  Take(FirstWait(2));
  ASSERT_THAT(blocks_.Announce(BlockOf(0, 1, 0, 2)),
              IsOkAndHolds(SelectedFor(1)));
  ASSERT_THAT(blocks_.Watch(7, BlockOf(1, 1, 2, 2), kNow),
              IsOkAndHolds(IsEmpty()));
  blocks_.SetReplicas(5, {});
  const auto ended = blocks_.Redo(2);

  // The watch ends, so that the pass is dropped.
  ASSERT_EQ(ended.size(), 1);
  EXPECT_EQ(ended[0].ticket, 7);
  // What was pushed is pushed no more.
  const Gate::Answer next = Take(BlockOf(0, 1, 0, 2), 1);
  EXPECT_EQ(next.outcome, Gate::Outcome::kToken);
  EXPECT_TRUE(next.not_needed);
  EXPECT_EQ(next.slot, 0);
  EXPECT_EQ(next.block, 1);
  EXPECT_THAT(blocks_.Announce(BlockOf(2, 1, 4, 2)),
              IsOkAndHolds(Says(Decision::kNotNeeded)));
  EXPECT_EQ(Take(BlockOf(2, 1, 4, 2)).slot, 1);
}

TEST_F(SharedGateBlockTest, NumberOfBlocksThatCannotBeChangesNothing) {
  blocks_.SetReplicas(4, {});

  EXPECT_EQ(Take(FirstWait(0)).block, 2);
}

}  // namespace
}  // namespace lockstep::server
