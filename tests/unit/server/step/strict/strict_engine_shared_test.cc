// Shared work: gradients have numbers, and belong to no worker.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

MATCHER_P2(PushIs, ticket, outcome, "is the answer to the push of a part") {
  return arg.ticket == static_cast<uint64_t>(ticket) && arg.status.ok() &&
         arg.outcomes == std::vector{outcome};
}

TEST(StrictEngineSharedTest, SharedNumbersAreSummedInTheirOrderByAnyWorkers) {
  for (const auto& workers : {std::vector{0, 0, 0}, {2, 1, 0}, {1, 2, 1}}) {
    FakePartUpdater updater(1);
    StrictEngine shard(
        {.replicas_to_aggregate = 3, .total_num_replicas = 3, .shared = true},
        updater);
    int64_t pass = 0;
    for (const int number : {2, 0, 1}) {
      EXPECT_THAT(updater.updates(), IsEmpty());
      EXPECT_THAT(
          shard
              .AddPush(7, PushOf({workers[number], 1, 0, ++pass, number}, 1, 0,
                                 1, 10 + number))
              ->pushes,
          ElementsAre(PushIs(7, PushOutcome::kAccepted)));
    }

    ASSERT_THAT(updater.updates(), SizeIs(1));
    EXPECT_THAT(updater.updates()[0].gradients, ElementsAre(10, 11, 12));
    // No worker is to be compared with a set.
    EXPECT_THAT(shard.Take(1, 0)->takes.at(0).contributors, IsEmpty());
    EXPECT_THAT(shard.arrivals().parts, IsEmpty());
  }
}

TEST(StrictEngineSharedTest, FirstGradientOfASharedNumberCounts) {
  FakePartUpdater updater(1);
  StrictEngine shard(
      {.replicas_to_aggregate = 2, .total_num_replicas = 2, .shared = true},
      updater);
  const auto push = [](int worker, int number, float value) {
    return PushOf({worker, 1, 0, 1, number}, 1, 0, 1, value);
  };
  ASSERT_OK(shard.AddPush(1, push(0, 1, 5)));

  EXPECT_THAT(shard.AddPush(2, push(1, 1, 6))->pushes,
              ElementsAre(PushIs(2, PushOutcome::kDuplicate)));

  ASSERT_OK(shard.AddPush(3, push(1, 0, 4)));
  ASSERT_THAT(updater.updates(), SizeIs(1));
  EXPECT_THAT(updater.updates()[0].gradients, ElementsAre(4, 5));
}

TEST(StrictEngineSharedTest, GradientOfANumberIsHereOnceAllPartsHaveIt) {
  FakePartUpdater updater(2);
  StrictEngine shard(
      {.replicas_to_aggregate = 2, .total_num_replicas = 2, .shared = true},
      updater);
  const auto pass = [](int worker, int number) {
    return Pass{worker, 1, 0, 1, number};
  };
  EXPECT_FALSE(shard.HasGradientOf(pass(0, 1), 1));
  ASSERT_OK(shard.AddPush(1, PushOf(pass(0, 1), 1, 0, 1, 5)));
  EXPECT_FALSE(shard.HasGradientOf(pass(0, 1), 1));
  ASSERT_OK(shard.AddPush(2, PushOf(pass(0, 1), 1, 1, 1, 5)));

  EXPECT_TRUE(shard.HasGradientOf(pass(0, 1), 1));
  // It is that of every worker.
  EXPECT_TRUE(shard.HasGradientOf(pass(1, 1), 1));
  EXPECT_FALSE(shard.HasGradientOf(pass(0, 0), 1));

  // Parts that are updated have all gradients.
  ASSERT_OK(shard.AddPush(3, PushOf(pass(1, 0), 1, 0, 2, 4)));
  EXPECT_TRUE(shard.HasGradientOf(pass(1, 0), 1));
  // The gate decides about other attempts and steps.
  shard.StartAttempt(0, 2);
  EXPECT_TRUE(shard.HasGradientOf(pass(0, 1), 1));
  EXPECT_FALSE(shard.HasGradientOf(pass(0, 1), 2));
}

// Workers push the others' shares to the other mirrors.
TEST(StrictEngineSharedTest, GradientOfAMirrorIsThatOfThePartsThatItSums) {
  FakePartUpdater updater(2);
  StrictEngine mirror({.replicas_to_aggregate = 2,
                       .total_num_replicas = 2,
                       .shared = true,
                       .copied = {false, true}},
                      updater);
  const Pass pass = {0, 1, 0, 1, 1};
  EXPECT_FALSE(mirror.HasGradientOf(pass, 1));

  ASSERT_OK(mirror.AddPush(1, PushOf(pass, 1, 0, 1, 5)));

  EXPECT_TRUE(mirror.HasGradientOf(pass, 1));
}

// Its number is not handed out again: the gradient would be refused.
TEST(StrictEngineSharedTest, FailedAttemptAsksForNoGradientAgain) {
  FakePartUpdater updater(1);
  updater.on_update = [](int, int64_t) { return absl::InternalError("why"); };
  StrictEngine shard(
      {.replicas_to_aggregate = 1, .total_num_replicas = 1, .shared = true},
      updater);
  const Pass pass = {0, 1, 0, 1, 0};
  EXPECT_FALSE(shard.HasGradientOf(pass, 1));

  ASSERT_OK(shard.AddPush(1, PushOf(pass, 1, 0, 1, 5)));

  EXPECT_TRUE(shard.HasGradientOf(pass, 1));
  shard.StartAttempt(0, 2);
  EXPECT_FALSE(shard.HasGradientOf(pass, 2));
}

// Gradients of blocks of the old size arrive until the attempt begins.
TEST(StrictEngineSharedTest, FewerBlocksCompleteNoAttemptBeforeTheNext) {
  FakePartUpdater updater(1);
  StrictEngine shard(
      {.replicas_to_aggregate = 3, .total_num_replicas = 2, .shared = true},
      updater);
  shard.Activate(0);
  const auto push = [](int first, int64_t attempt, float value) {
    return PushOf({0, 1, 0, 1, first}, attempt, 0, 1, value);
  };
  ASSERT_OK(shard.AddPush(1, push(0, 1, 5)));
  shard.SetReplicas(2);
  ASSERT_OK(shard.AddPush(2, push(1, 1, 5)));
  EXPECT_THAT(updater.updates(), IsEmpty());

  shard.StartAttempt(0, 2);
  ASSERT_OK(shard.AddPush(3, push(2, 2, 8)));
  ASSERT_OK(shard.AddPush(4, push(0, 2, 7)));

  ASSERT_THAT(updater.updates(), SizeIs(1));
  EXPECT_THAT(updater.updates()[0].gradients, ElementsAre(7, 8));
}

}  // namespace
}  // namespace lockstep::server
