#include "worker/data/epoch_permutation.h"

#include <limits>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<int64_t> First(int64_t count, const EpochPermutation& order) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(order.At(i));
  return numbers;
}

TEST(EpochPermutationTest, EachNumberHasOnePlace) {
  for (const int64_t n : {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 65537}) {
    const std::vector<int64_t> all = First(n, EpochPermutation(n, 7, 3));
    const std::set<int64_t> different(all.begin(), all.end());
    EXPECT_EQ(different.size(), static_cast<size_t>(n));
    EXPECT_EQ(*different.begin(), 0);
    EXPECT_EQ(*different.rbegin(), n - 1);
  }
}

// A resumed job goes on in it: these numbers must never change.
TEST(EpochPermutationTest, OrderIsTheSameEverywhere) {
  EXPECT_THAT(
      First(4, EpochPermutation(int64_t{1} << 40, 1, 0)),
      ElementsAre(296789518376, 640922382815, 802515323074, 454622350040));
}

TEST(EpochPermutationTest, SeedsAndEpochsHaveOrdersOfTheirOwn) {
  const auto order = First(100, EpochPermutation(1'000'000, 1, 0));
  EXPECT_NE(order, First(100, EpochPermutation(1'000'000, 1, 1)));
  EXPECT_NE(order, First(100, EpochPermutation(1'000'000, 2, 0)));
  EXPECT_NE(First(100, EpochPermutation(1'000'000, 1, 1)),
            First(100, EpochPermutation(1'000'000, 2, 0)));
}

TEST(EpochPermutationTest, PlacesOfTheLargestSetHaveItsNumbers) {
  const int64_t n = std::numeric_limits<int64_t>::max() / 4;
  EXPECT_THAT(First(1000, EpochPermutation(n, 1, 0)),
              Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(n))));
}

// Neighbours of the set come nowhere near each other: of 10,000 places each
// tenth of the numbers gets about a tenth.
TEST(EpochPermutationTest, NumbersAreSpreadEvenly) {
  std::vector<int> tenths(10);
  for (const int64_t number :
       First(10'000, EpochPermutation(100'000'000, 5, 2)))
    ++tenths[static_cast<size_t>(number / 10'000'000)];
  EXPECT_THAT(tenths,
              Each(::testing::AllOf(::testing::Gt(880), ::testing::Lt(1120))));
}

}  // namespace
}  // namespace lockstep::worker
