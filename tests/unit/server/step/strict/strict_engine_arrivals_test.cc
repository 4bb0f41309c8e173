// What a shard says of the gradients that are in, and keeps of calls that bring
// the same ones.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr int kParts = 2;

Push PushFor(int worker, int first_part, int num_parts, int64_t attempt = 1) {
  return PushOf({worker, 1, 0, 1, 0}, attempt, first_part, num_parts, 7);
}

class StrictEngineArrivalsTest : public ::testing::Test {
 protected:
  void Add(const Push& push) { EXPECT_OK(shard_.AddPush(++ticket_, push)); }

  FakePartUpdater updater_{kParts};
  StrictEngine shard_{{.replicas_to_aggregate = 2, .total_num_replicas = 3},
                      updater_};
  uint64_t ticket_ = 0;
};

TEST_F(StrictEngineArrivalsTest, AreThoseOfPartsThatLackGradients) {
  EXPECT_EQ(shard_.arrivals().attempt, 1);
  EXPECT_EQ(shard_.arrivals().open_parts, kParts);
  EXPECT_THAT(shard_.arrivals().parts, IsEmpty());

  Add(PushFor(0, 0, kParts));
  Add(PushFor(1, 1, 1));

  EXPECT_EQ(shard_.arrivals().open_parts, 1);
  EXPECT_THAT(shard_.arrivals().parts, ElementsAre(Pair(0, 1)));
}

TEST_F(StrictEngineArrivalsTest, AreThoseOfTheAttemptAtHand) {
  Add(PushFor(0, 0, kParts));

  shard_.StartAttempt(0, 2);

  EXPECT_EQ(shard_.arrivals().attempt, 2);
  EXPECT_EQ(shard_.arrivals().open_parts, kParts);
  EXPECT_THAT(shard_.arrivals().parts, IsEmpty());
  Add(PushFor(2, 0, 1, 2));
  EXPECT_THAT(shard_.arrivals().parts, ElementsAre(Pair(2, 1)));
}

TEST_F(StrictEngineArrivalsTest, CountAPartOnceHoweverManySharesAreIn) {
  FakePartUpdater updater(1);
  StrictEngine shard({.replicas_to_aggregate = 4, .total_num_replicas = 2},
                     updater);
  for (int slot : {0, 1}) {
    ASSERT_OK(shard.AddPush(1, PushOf({1, 1, 0, slot + 1, slot}, 1, 0, 1, 7)));
  }

  EXPECT_THAT(shard.arrivals().parts, ElementsAre(Pair(1, 1)));
}

TEST_F(StrictEngineArrivalsTest, OfRepeatedPushesOnlyTheNewestTwoWait) {
  for (uint64_t ticket : {1, 2}) {
    EXPECT_THAT(shard_.AddPush(ticket, PushFor(0, 0, kParts))->pushes,
                IsEmpty());
  }
  for (uint64_t ticket : {3, 4, 5}) {
    const auto answers = shard_.AddPush(ticket, PushFor(0, 0, kParts));
    ASSERT_OK(answers);
    ASSERT_THAT(answers->pushes, SizeIs(1));
    EXPECT_EQ(answers->pushes[0].ticket, ticket - 2);
    EXPECT_EQ(answers->pushes[0].status.code(), absl::StatusCode::kAborted);
  }

  const auto answers = shard_.AddPush(9, PushFor(1, 0, kParts));

  ASSERT_OK(answers);
  std::vector<uint64_t> accepted;
  for (const PushAnswer& answer : answers->pushes) {
    EXPECT_OK(answer.status);
    if (answer.outcomes[0] == PushOutcome::kAccepted) {
      accepted.push_back(answer.ticket);
    }
  }
  EXPECT_THAT(accepted, UnorderedElementsAre(4, 9));
  EXPECT_THAT(answers->pushes, SizeIs(3));
}

}  // namespace
}  // namespace lockstep::server
