#include "worker/data/epoch_shuffle.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

TEST(SplitMix64Test, GivesTheGeneratorsPublishedNumbers) {
  SplitMix64 random(1234567);

  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
}

TEST(SplitMix64Test, NumbersBelowABoundAreFixed) {
  SplitMix64 random(7);
  std::vector<uint64_t> numbers;

  for (int i = 0; i < 8; ++i) numbers.push_back(random.Below(10));

  EXPECT_THAT(numbers, ElementsAre(7, 4, 6, 3, 4, 5, 8, 2));
}

TEST(SplitMix64Test, OnlyZeroIsBelowOne) {
  SplitMix64 random(3);

  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Below(1), 0u);
}

TEST(SplitMix64Test, NumbersBelowALargeBoundAreNotBiased) {
  // Without drawing again, the lower half would come twice as often.
  constexpr uint64_t kBound = (uint64_t{3} << 62);
  SplitMix64 random(11);
  int low = 0;

  for (int i = 0; i < 9000; ++i) low += random.Below(kBound) < kBound / 3;

  EXPECT_NEAR(low, 3000, 200);
}

TEST(EpochShuffleTest, OrderIsTheSameOnEveryMachine) {
  EXPECT_THAT(EpochShuffle(10, 1, 0),
              ElementsAre(0, 8, 1, 4, 2, 3, 6, 9, 7, 5));
  EXPECT_THAT(EpochShuffle(10, 1, 1),
              ElementsAre(4, 9, 7, 3, 5, 2, 0, 8, 6, 1));
  EXPECT_THAT(EpochShuffle(10, 2, 0),
              ElementsAre(8, 9, 3, 4, 2, 7, 1, 0, 6, 5));
  EXPECT_THAT(EpochShuffle(10, 0, 0),
              ElementsAre(1, 7, 6, 2, 0, 9, 8, 4, 5, 3));
}

TEST(EpochShuffleTest, EveryNumberComesOnce) {
  std::vector<int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);

  std::vector<int64_t> order = EpochShuffle(1000, 5, 17);
  EXPECT_NE(order, all);
  std::sort(order.begin(), order.end());

  EXPECT_EQ(order, all);
}

TEST(EpochShuffleTest, NextEpochIsNotTheNextSeedsOrder) {
  EXPECT_NE(EpochShuffle(10, 1, 1), EpochShuffle(10, 2, 0));
}

TEST(EpochShuffleTest, EveryPlaceIsEquallyLikely) {
  constexpr int kRounds = 6000;
  std::vector<int> first_place(6, 0);

  for (int epoch = 0; epoch < kRounds; ++epoch) {
    ++first_place[static_cast<size_t>(EpochShuffle(6, 1, epoch)[0])];
  }

  EXPECT_THAT(first_place, Each(AllOf(Ge(850), Le(1150))));
}

TEST(EpochShuffleTest, SmallSetsAreShuffledToo) {
  EXPECT_THAT(EpochShuffle(1, 1, 0), ElementsAre(0));
  EXPECT_THAT(EpochShuffle(0, 1, 0), IsEmpty());
  EXPECT_THAT(EpochShuffle(-1, 1, 0), IsEmpty());
}

}  // namespace
}  // namespace lockstep::worker
