#include "server/step/strict/attempt_gate.h"

#include <memory>
#include <type_traits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/shared_gate.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::CancelledFor;
using ::lockstep::testing::FinishedFor;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
const absl::Time kNow = absl::FromUnixSeconds(1000);

// What holds for each gate of strict mode, of steps of two gradients.
template <typename Kind>
class AttemptGateTest : public ::testing::Test {
 protected:
  static Kind Make() {
    if constexpr (std::is_same_v<Kind, StrictGate>) {
      return Kind({.replicas_to_aggregate = 2, .total_num_replicas = 3});
    } else {
      return Kind({.numbers = 2, .total_num_replicas = 3});
    }
  }

  // The worker's first wait, or that after its `pass`-th pass.
  static Pass PassOf(int worker, int64_t pass, uint64_t incarnation = 1) {
    return {worker, incarnation, pass - 1, pass, 0};
  }
  auto Wait(uint64_t ticket, const Pass& pass) {
    return gate_.Wait(ticket, pass, 0, kNow);
  }

  Kind kind_ = Make();
  AttemptGate& gate_ = kind_;
};

using Kinds = ::testing::Types<StrictGate, SharedGate>;
TYPED_TEST_SUITE(AttemptGateTest, Kinds);

TYPED_TEST(AttemptGateTest, AWorkerHasOneWaitTheNewest) {
  EXPECT_THAT(this->Wait(1, this->PassOf(0, 0)), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(this->Wait(2, this->PassOf(0, 0)),
              IsOkAndHolds(ElementsAre(CancelledFor(1))));

  EXPECT_THAT(this->gate_.WaitingWorkers(), SizeIs(1));
  this->gate_.Cancel(2);
  EXPECT_THAT(this->gate_.WaitingWorkers(), IsEmpty());
}

TYPED_TEST(AttemptGateTest, ADelayedWaitOfAnOlderPassEndsAtOnce) {
  ASSERT_THAT(this->gate_.Activate(5), IsEmpty());
  EXPECT_THAT(this->Wait(1, this->PassOf(0, 3)), IsOkAndHolds(SizeIs(1)));

  EXPECT_THAT(this->Wait(2, this->PassOf(0, 2)),
              IsOkAndHolds(ElementsAre(CancelledFor(2))));
}

TYPED_TEST(AttemptGateTest, AWatchIsNoWaitOfAWorkerThatWantsToGoOn) {
  EXPECT_THAT(this->gate_.Watch(1, this->PassOf(0, 1), kNow),
              IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(this->gate_.WaitingWorkers(), IsEmpty());
}

TYPED_TEST(AttemptGateTest, WaitsAreAnsweredInOrderOfArrival) {
  EXPECT_THAT(this->Wait(1, this->PassOf(2, 0)), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(this->Wait(2, this->PassOf(0, 0)), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(this->Wait(3, this->PassOf(1, 0)), IsOkAndHolds(IsEmpty()));
  // A wait that is repeated has arrived anew.
  EXPECT_THAT(this->Wait(4, this->PassOf(2, 0)),
              IsOkAndHolds(ElementsAre(CancelledFor(1))));

  EXPECT_THAT(this->gate_.Finish(),
              ElementsAre(FinishedFor(2), FinishedFor(3), FinishedFor(4)));
}

TYPED_TEST(AttemptGateTest, AllWaitsEndWithTheJobUntilItIsReopened) {
  EXPECT_THAT(this->Wait(1, this->PassOf(0, 0)), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(this->gate_.Finish(), ElementsAre(FinishedFor(1)));
  EXPECT_THAT(this->Wait(2, this->PassOf(1, 0)),
              IsOkAndHolds(ElementsAre(FinishedFor(2))));

  this->gate_.Reopen();
  EXPECT_THAT(this->Wait(3, this->PassOf(2, 0)), IsOkAndHolds(IsEmpty()));
}

TYPED_TEST(AttemptGateTest, OnlyTheAttemptAtHandOfTheStepAtHandIsCommitted) {
  ASSERT_THAT(this->gate_.Activate(4), IsEmpty());

  EXPECT_THAT(this->gate_.Commit(4, 1), IsOkAndHolds(IsEmpty()))
      << "it is committed";
  EXPECT_THAT(this->gate_.Commit(6, 1),
              StatusIs(kRefused, HasSubstr("commit attempt 1 of step 5")));
  EXPECT_THAT(this->gate_.Redo(3), IsEmpty());
  EXPECT_THAT(this->gate_.Commit(5, 2),
              StatusIs(kRefused, HasSubstr("commit attempt 3 of step 5")));
  EXPECT_EQ(this->gate_.global_step(), 4);
}

TYPED_TEST(AttemptGateTest, ADeadWorkersWaitEndsAndItsSuccessorsStays) {
  EXPECT_THAT(this->Wait(1, this->PassOf(0, 0, 7)), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(this->Wait(2, this->PassOf(1, 0, 9)), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(this->gate_.Expire(0, 7).answers, ElementsAre(CancelledFor(1)));
  EXPECT_THAT(this->gate_.Expire(1, 8).answers, IsEmpty());
  EXPECT_THAT(this->Wait(3, this->PassOf(0, 0, 7)), StatusIs(kRefused));
  EXPECT_EQ(this->gate_.NewestIncarnation(1), 9U);
}

TYPED_TEST(AttemptGateTest, AWorkerThatLeavesWaitsForNothing) {
  EXPECT_THAT(this->Wait(1, this->PassOf(0, 0)), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(this->Wait(2, this->PassOf(2, 0)), IsOkAndHolds(IsEmpty()));

  EXPECT_THAT(this->gate_.SetReplicas(2, {0, 1}), ElementsAre(CancelledFor(2)));
}

}  // namespace
}  // namespace lockstep::server
