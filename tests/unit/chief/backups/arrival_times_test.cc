#include "chief/backups/arrival_times.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kLongest = 100;

// Times are equally likely.
PassDistribution Of(const std::vector<double>& seconds) {
  PassDistribution distribution;
  for (const double one : seconds) {
    distribution.push_back(
        {BinOf(one), 1.0 / static_cast<double>(seconds.size())});
  }
  return distribution;
}

double Rounded(double seconds) { return SecondsOf(BinOf(seconds)); }

auto Near(double seconds) { return ::testing::DoubleNear(seconds, 1e-9); }

TEST(ArrivalTimesTest, NoWorkersHaveNoArrivals) {
  EXPECT_THAT(ExpectedArrivals({}, 3, kLongest), IsEmpty());
}

TEST(ArrivalTimesTest, ConstantWorkersArriveInOrder) {
  EXPECT_THAT(
      ExpectedArrivals({Of({2}), Of({1}), Of({4})}, 2, kLongest),
      ElementsAre(Near(Rounded(4)), Near(Rounded(2)), Near(Rounded(1))));
}

// Two equal coins: both early 1/4, one early 1/2, none 1/4.
TEST(ArrivalTimesTest, IndependentWorkersFollowTheBinomialLaw) {
  const double early = Rounded(1);
  const double late = Rounded(3);
  EXPECT_THAT(ExpectedArrivals({Of({1, 3}), Of({1, 3})}, 1, kLongest),
              ElementsAre(Near(early / 4 + late * 3 / 4),
                          Near(early * 3 / 4 + late / 4)));
}

TEST(ArrivalTimesTest, UnequalWorkersHaveTheirOwnChances) {
  const double early = Rounded(1);
  const double late = Rounded(3);
  // The last arrives early only if the coin does.
  EXPECT_THAT(ExpectedArrivals({Of({1}), Of({1, 3})}, 1, kLongest),
              ElementsAre(Near((early + late) / 2), Near(early)));
}

TEST(ArrivalTimesTest, TimesBeyondTheLongestAndOpenOnesCountAsThat) {
  EXPECT_THAT(ExpectedArrivals({Of({500}), Of({1})}, 1, kLongest),
              ElementsAre(Near(kLongest), Near(Rounded(1))));
  EXPECT_THAT(ExpectedArrivals({{}, Of({1})}, 1, kLongest),
              ElementsAre(Near(kLongest), Near(Rounded(1))));
}

TEST(ArrivalTimesTest, AsManyElementsAsAskedOrWorkers) {
  EXPECT_THAT(ExpectedArrivals({Of({1}), Of({1})}, 9, kLongest), SizeIs(2));
  EXPECT_THAT(ExpectedArrivals({Of({1}), Of({1})}, 0, kLongest), SizeIs(1));
}

// The mean of the largest of n uniform times is n / (n + 1) of the range, and
// of the i-th missing (n - i) / (n + 1).
TEST(ArrivalTimesTest, UniformTimesHaveTheKnownOrderStatistics) {
  std::vector<double> grid;
  for (int i = 0; i < 4000; ++i) grid.push_back(1 + (i + 0.5) / 4000);
  const std::vector<double> expected =
      ExpectedArrivals(std::vector<PassDistribution>(9, Of(grid)), 3, kLongest);
  ASSERT_THAT(expected, SizeIs(4));
  for (int missing = 0; missing < 4; ++missing) {
    EXPECT_NEAR(expected[static_cast<size_t>(missing)],
                1 + (9 - missing) / 10.0, 0.005);
  }
}

// Distributions of many equal workers are skipped where too many are missing;
// the result must be that of the sum.
TEST(ArrivalTimesTest, ThousandsOfWorkersAreQuick) {
  std::vector<double> grid;
  for (int i = 0; i < 100; ++i) grid.push_back(1 + (i + 0.5) / 100);
  const std::vector<double> expected = ExpectedArrivals(
      std::vector<PassDistribution>(5000, Of(grid)), 50, kLongest);
  ASSERT_THAT(expected, SizeIs(51));
  EXPECT_NEAR(expected[50], 1 + 4950.0 / 5001, 0.02);
  EXPECT_GE(expected[0], expected[50]);
}

}  // namespace
}  // namespace lockstep::chief
