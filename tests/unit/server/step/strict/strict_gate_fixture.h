#ifndef LOCKSTEP_TESTS_UNIT_SERVER_STEP_STRICT_STRICT_GATE_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_STEP_STRICT_STRICT_GATE_FIXTURE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/plan/step_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_gate.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

MATCHER_P(Says, decision, "says the decision") {
  return arg.decision == decision;
}
MATCHER_P(SelectedFor, attempt, "is selected") {
  return arg.decision == server::Gate::Decision::kSelected &&
         arg.attempt == attempt;
}

inline const absl::Time kNow = absl::FromUnixSeconds(1000);

// The only pass of a worker's first incarnation for a step.
inline Pass PassOfStep(int worker, int64_t step = 0, uint64_t incarnation = 1) {
  return {worker, incarnation, step, step + 1, 0};
}
inline Pass FirstWait(int worker, uint64_t incarnation = 1) {
  return {worker, incarnation, -1, 0, 0};
}

// Three replicas of which two count.
class StrictGateFixture : public ::testing::Test {
 protected:
  StrictGateFixture() { EXPECT_THAT(gate_.Activate(0), ::testing::IsEmpty()); }

  void Announce(int worker, server::Gate::Decision expected, int64_t step = 0) {
    EXPECT_THAT(gate_.Announce(PassOfStep(worker, step)),
                IsOkAndHolds(Says(expected)));
  }
  // Files a wait under the worker's number; it must not be ready.
  void WaitAs(int worker, int64_t attempt, int64_t step = 0) {
    EXPECT_THAT(gate_.Wait(worker, PassOfStep(worker, step), attempt, kNow),
                IsOkAndHolds(::testing::IsEmpty()));
  }

  server::StrictGate gate_{
      {.replicas_to_aggregate = 2, .total_num_replicas = 3}};
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_STEP_STRICT_STRICT_GATE_FIXTURE_H_
