// Members that live but hold up their step.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::RedoFor;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Decision = Gate::Decision;

const absl::Time kNow = absl::FromUnixSeconds(1000);

// Four replicas of which two count. Workers 0 and 1 are the set; ticket w is
// worker w's.
class StrictGateReplaceTest : public ::testing::Test {
 protected:
  StrictGateReplaceTest() {
    gate_.Activate(0);
    for (int worker : {0, 1}) {
      EXPECT_EQ(gate_.Announce(PassOfStep(worker))->decision,
                Decision::kSelected);
    }
  }

  static Pass PassOfStep(int worker) { return {worker, 1, 0, 1, 0}; }

  void Announce(int worker) {
    EXPECT_EQ(gate_.Announce(PassOfStep(worker))->decision,
              Decision::kNotNeeded);
  }
  void WaitAs(int worker, int64_t attempt) {
    EXPECT_THAT(gate_.Wait(worker, PassOfStep(worker), attempt, kNow),
                IsOkAndHolds(IsEmpty()));
  }
  void ExpectNothingChanges(int worker, int64_t step = 0, int64_t attempt = 1) {
    const Gate::Replaced replaced = gate_.Replace(worker, step, attempt);
    EXPECT_EQ(replaced.by, std::nullopt);
    EXPECT_EQ(replaced.step, 0);
    EXPECT_EQ(replaced.attempt, 1);
    EXPECT_THAT(replaced.answers, IsEmpty());
    EXPECT_THAT(gate_.Members(), ElementsAre(0, 1));
  }

  StrictGate gate_{{.replicas_to_aggregate = 2, .total_num_replicas = 4}};
};

TEST_F(StrictGateReplaceTest, WorkerThatWaitsTakesThePlaceAndAllPushAnew) {
  Announce(2);
  WaitAs(2, 0);
  WaitAs(1, 1);

  const Gate::Replaced replaced = gate_.Replace(0, 0, 1);

  EXPECT_EQ(replaced.by, 2);
  EXPECT_EQ(replaced.step, 0);
  EXPECT_EQ(replaced.attempt, 2);
  EXPECT_THAT(replaced.answers,
              UnorderedElementsAre(RedoFor(1, 2), RedoFor(2, 2)));
  EXPECT_THAT(gate_.Members(), ElementsAre(1, 2));
  EXPECT_THAT(gate_.Commit(1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(gate_.Commit(1, 2));
}

TEST_F(StrictGateReplaceTest,
       NoMemberIsReplacedByAWorkerWhoseGradientIsNotReady) {
  ExpectNothingChanges(0);
  Announce(2);
  ExpectNothingChanges(0);
  ASSERT_OK(gate_.Watch(2, PassOfStep(2), kNow));
  ExpectNothingChanges(0);
  WaitAs(3, 0);  // has announced nothing
  ExpectNothingChanges(0);
}

TEST_F(StrictGateReplaceTest, OnlyMembersOfTheAttemptAtHandAreReplaced) {
  Announce(2);
  WaitAs(2, 0);

  ExpectNothingChanges(2);
  ExpectNothingChanges(3);
  ExpectNothingChanges(-1);
  ExpectNothingChanges(0, /*step=*/1);
  ExpectNothingChanges(0, /*step=*/0, /*attempt=*/2);
}

TEST_F(StrictGateReplaceTest, RepeatedCallFindsTheAttemptOver) {
  Announce(2);
  Announce(3);
  WaitAs(2, 0);
  WaitAs(3, 0);

  EXPECT_EQ(gate_.Replace(0, 0, 1).by, 2);
  const Gate::Replaced again = gate_.Replace(0, 0, 1);

  EXPECT_EQ(again.by, std::nullopt);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_THAT(gate_.Members(), ElementsAre(1, 2));
}

TEST_F(StrictGateReplaceTest, ReplacedWorkerIsNotNeededUntilAnotherGoes) {
  Announce(2);
  WaitAs(2, 0);
  ASSERT_EQ(gate_.Replace(0, 0, 1).by, 2);

  Announce(0);   // its first answer was late
  WaitAs(0, 1);  // it goes on, superseded

  EXPECT_THAT(gate_.Expire(1, 1).answers, ElementsAre(RedoFor(0, 3)));
  EXPECT_THAT(gate_.Members(), ElementsAre(0, 2));
}

TEST_F(StrictGateReplaceTest, ReplacedWorkerGoesBehindAllThatAnnounced) {
  for (int worker : {2, 3}) {
    Announce(worker);
    WaitAs(worker, 0);
  }
  WaitAs(0, 1);

  EXPECT_EQ(gate_.Replace(0, 0, 1).by, 2);
  EXPECT_EQ(gate_.Replace(1, 0, 2).by, 3);

  EXPECT_THAT(gate_.Members(), ElementsAre(2, 3));
}

TEST_F(StrictGateReplaceTest, ReplacedWorkerHearsOfItAndMayTakePartAgain) {
  Announce(2);
  WaitAs(2, 0);
  ASSERT_EQ(gate_.Replace(0, 0, 1).by, 2);
  WaitAs(0, 1);
  WaitAs(2, 2);

  const auto answers = gate_.Commit(1, 2);

  ASSERT_THAT(answers, IsOkAndHolds(UnorderedElementsAre(TokenFor(0, 1),
                                                         TokenFor(2, 1))));
  for (const Gate::Answer& answer : *answers) {
    EXPECT_EQ(answer.not_needed, answer.ticket == 0);
  }
  EXPECT_EQ(gate_.Announce({0, 1, 1, 2, 0})->decision, Decision::kSelected);
}

TEST_F(StrictGateReplaceTest, WithoutBackupsNoMemberIsReplaced) {
  for (int replicas : {2, 4}) {
    StrictGate gate(
        {.replicas_to_aggregate = replicas, .total_num_replicas = 2});
    gate.Activate(0);
    for (int worker : {0, 1}) {
      ASSERT_OK(gate.Announce(PassOfStep(worker)));
      ASSERT_OK(gate.Wait(worker, PassOfStep(worker), 1, kNow));
    }

    EXPECT_EQ(gate.Replace(0, 0, 1).by, std::nullopt);
    EXPECT_THAT(gate.Members(), ElementsAre(0, 1));
  }
}

TEST_F(StrictGateReplaceTest, RepeatedDeathOfTheNewestIncarnationTakesNoOther) {
  StrictGate gate({.replicas_to_aggregate = 1, .total_num_replicas = 1});
  ASSERT_OK(gate.Wait(1, Pass{0, 7, -1, 0, 0}, 0, kNow));
  EXPECT_EQ(gate.NewestIncarnation(0), 7u);

  for (int i = 0; i < 3; ++i) gate.Expire(0, gate.NewestIncarnation(0));

  EXPECT_EQ(gate.NewestIncarnation(0), 7u);
  EXPECT_OK(gate.Wait(2, Pass{0, 8, -1, 0, 0}, 0, kNow));
  EXPECT_EQ(gate.NewestIncarnation(0), 8u);
}

}  // namespace
}  // namespace lockstep::server
