#include "strategy/engine.h"

#include <unistd.h>

#include <atomic>
#include <iostream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/cross.h"
#include "strategy/replica.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/process/forbid_threads.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

TEST(EngineTest, AThreadIsInAReplicaAcrossThemOrInNeither) {
  Engine engine({Kind::kMirrored, 2, {}}, nullptr);
  EXPECT_TRUE(CurrentReplica()->IsOfDefaultStrategy());
  EXPECT_THAT(engine.Across([&] {
    EXPECT_EQ(CurrentReplica(), nullptr);
    return engine.RunReplicas([&](Replica& replica) {
      EXPECT_EQ(CurrentReplica(), &replica);
      return absl::OkStatus();
    });
  }),
              IsOk());
  EXPECT_TRUE(CurrentReplica()->IsOfDefaultStrategy());
}

TEST(EngineTest, AllReplicasRunAtTheSameTime) {
  Engine engine({Kind::kMirrored, 3, {}}, nullptr);
  std::atomic<int> running = 0;
  EXPECT_THAT(engine.RunReplicas([&](Replica&) {
    ++running;
    while (running < 3) std::this_thread::yield();  // hangs if one by one
    return absl::OkStatus();
  }),
              IsOk());
}

TEST(EngineTest, AReplicaWithoutAThreadIsAnErrorAndEndsTheWaitOfTheOther) {
  constexpr int kCode = 77;
  EXPECT_EXIT(
      {
        ForbidThreads();
        Engine engine({Kind::kMirrored, 2, {}}, nullptr);
        const absl::Status run = engine.RunReplicas([](Replica& replica) {
          return replica.Merge([](Cross&) { return absl::OkStatus(); });
        });
        std::cerr << run.message();
        _exit(absl::IsResourceExhausted(run) ? kCode : 1);
      },
      ::testing::ExitedWithCode(kCode), "a thread cannot be made");
}

TEST(EngineTest, AnotherStrategyMustNotActMeanwhile) {
  Engine engine({Kind::kMirrored, 1, {}}, nullptr);
  Engine rival({Kind::kMirrored, 1, {}}, nullptr);
  const auto nothing = [] { return absl::OkStatus(); };
  EXPECT_THAT(engine.Across([&] { return rival.Across(nothing); }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(engine.Across([&] { return engine.Across(nothing); }), IsOk());
}

}  // namespace
}  // namespace lockstep::strategy
