#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::SlotTokenFor;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Decision = server::Gate::Decision;

const absl::Time kNow = absl::FromUnixSeconds(1000);

MATCHER_P(Says, decision, "says the decision") {
  return arg.decision == decision;
}
MATCHER_P(SelectedFor, attempt, "is selected") {
  return arg.decision == Decision::kSelected && arg.attempt == attempt;
}

// Fewer replicas than gradients: workers have several shares of a step.
class SharesTest : public ::testing::Test {
 protected:
  explicit SharesTest(int replicas_to_aggregate = 3)
      : gate_({replicas_to_aggregate, /*total_num_replicas=*/2}) {
    gate_.Activate(0);
  }

  static Pass Share(int worker, int slot, int64_t pass) {
    return {worker, 1, 0, pass, slot};
  }
  void Announce(const Pass& pass, int64_t attempt) {
    EXPECT_THAT(gate_.Announce(pass), IsOkAndHolds(SelectedFor(attempt)));
  }
  auto Wait(const Pass& pass, int64_t attempt) {
    return gate_.Wait(pass.worker, pass, attempt, kNow);
  }

  server::StrictGate gate_;
};

TEST_F(SharesTest, SharesOfAStepAreSpreadEvenly) {
  // The gate refuses a slot that is no share of the worker's.
  const auto quotas = [](int a, int n) {
    server::StrictGate gate({a, n});
    gate.Activate(0);
    std::vector<int> quotas;
    for (int worker = 0; worker < n; ++worker) {
      int slot = 0;
      while (gate.Announce(Share(worker, slot, slot + 1)).ok()) ++slot;
      quotas.push_back(slot);
    }
    return quotas;
  };

  EXPECT_THAT(quotas(4, 2), ElementsAre(2, 2));
  EXPECT_THAT(quotas(3, 2), ElementsAre(2, 1));
  EXPECT_THAT(quotas(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(quotas(2, 2), ElementsAre(1, 1));
  EXPECT_THAT(quotas(1, 3), ElementsAre(1, 1, 1));
}

TEST_F(SharesTest, WorkerIsGivenItsSharesOneAfterTheOther) {
  EXPECT_THAT(Wait(Pass{0, 1, -1, 0, 0}, 0),
              IsOkAndHolds(ElementsAre(TokenFor(0, 0))));
  Announce(Share(0, 0, 1), 1);
  EXPECT_THAT(Wait(Share(0, 0, 1), 1),
              IsOkAndHolds(ElementsAre(SlotTokenFor(0, 0, 1))));
  Announce(Share(0, 1, 2), 1);
  EXPECT_THAT(Wait(Share(0, 1, 2), 1), IsOkAndHolds(IsEmpty()));
  Announce(Share(1, 0, 1), 1);
  EXPECT_THAT(Wait(Share(1, 0, 1), 1), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate_.Members(), ElementsAre(0, 0, 1));
  EXPECT_THAT(gate_.Commit(1, 1), IsOkAndHolds(UnorderedElementsAre(
                                      TokenFor(0, 1), TokenFor(1, 1))));
}

TEST_F(SharesTest, ShareThatIsNotTheWorkersIsRefused) {
  EXPECT_THAT(gate_.Announce(Share(0, 2, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(gate_.Announce(Share(1, 1, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slot 1 of worker 1 is not below 1")));
}

TEST_F(SharesTest, NewAttemptBeginsWithTheFirstShareOfEveryWorker) {
  Announce(Share(0, 0, 1), 1);
  ASSERT_OK(Wait(Share(0, 0, 1), 1));
  Announce(Share(0, 1, 2), 1);
  Announce(Share(1, 0, 1), 1);
  ASSERT_THAT(Wait(Share(0, 1, 2), 1), IsOkAndHolds(IsEmpty()));

  const server::Gate::Expired expired = gate_.Expire(1, 1);

  EXPECT_TRUE(expired.held_announcement);
  EXPECT_EQ(expired.attempt, 2);
  EXPECT_THAT(expired.answers, ElementsAre(SlotTokenFor(0, 0, 0)));
  EXPECT_THAT(gate_.Members(), IsEmpty());
  Announce(Share(0, 0, 3), 2);
}

TEST_F(SharesTest, NewAttemptWakesAWorkerWithASingleShare) {
  Announce(Share(0, 0, 1), 1);
  Announce(Share(1, 0, 1), 1);
  ASSERT_THAT(Wait(Share(1, 0, 1), 1), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(gate_.Expire(0, 1).answers, ElementsAre(SlotTokenFor(1, 0, 0)));
}

TEST_F(SharesTest, WorkerInTheMiddleOfAShareGoesOnWithTheOthers) {
  Announce(Share(0, 0, 1), 1);
  Announce(Share(1, 0, 1), 1);
  ASSERT_OK(Wait(Share(0, 0, 1), 1));  // now it computes share 1
  gate_.Expire(1, 1);

  Announce(Share(0, 1, 2), 2);

  EXPECT_THAT(Wait(Share(0, 1, 2), 2),
              IsOkAndHolds(ElementsAre(SlotTokenFor(0, 0, 0))));
  Announce(Share(0, 0, 3), 2);
  EXPECT_THAT(Wait(Share(0, 0, 3), 2), IsOkAndHolds(IsEmpty()));
}

TEST_F(SharesTest, DelayedAnnouncementOfAnEndedShareDoesNotCount) {
  Announce(Share(0, 0, 1), 1);
  Announce(Share(1, 0, 1), 1);
  ASSERT_OK(Wait(Share(0, 0, 1), 1));
  Announce(Share(0, 1, 2), 1);
  ASSERT_OK(Wait(Share(0, 1, 2), 1));
  gate_.Expire(1, 1);

  // The worker holds neither gradient any more: it was told to begin anew.
  for (const Pass& ended : {Share(0, 0, 1), Share(0, 1, 2)}) {
    EXPECT_THAT(gate_.Announce(ended), IsOkAndHolds(Says(Decision::kTooLate)));
  }

  EXPECT_THAT(gate_.Members(), IsEmpty());
}

TEST_F(SharesTest, EveryWorkerCountsAsOftenAsItHasShares) {
  server::StrictGate gate(
      {.replicas_to_aggregate = 4, .total_num_replicas = 2});
  gate.Activate(0);
  for (int slot : {0, 1}) {
    for (int worker : {1, 0}) {
      EXPECT_THAT(gate.Announce(Share(worker, slot, slot + 1)),
                  IsOkAndHolds(SelectedFor(1)));
    }
    EXPECT_EQ(gate.Commit(1, 1).ok(), slot == 1);
  }
}

}  // namespace
}  // namespace lockstep
