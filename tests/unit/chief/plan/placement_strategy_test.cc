#include "chief/plan/placement_strategy.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::testing::ElementsAre;

std::vector<int> Greedy(int servers, const std::vector<int64_t>& loads) {
  GreedyByLoad greedy(servers);
  std::vector<int> chosen;
  for (const int64_t load : loads) chosen.push_back(greedy.Next(load));
  return chosen;
}

TEST(PlacementStrategyTest, RoundRobinBeginsAgainAtTheEnd) {
  RoundRobin strategy(3);
  std::vector<int> chosen;
  for (int i = 0; i < 5; ++i) chosen.push_back(strategy.Next());
  EXPECT_THAT(chosen, ElementsAre(0, 1, 2, 0, 1));
}

TEST(PlacementStrategyTest, EqualLoadsGoRound) {
  EXPECT_THAT(Greedy(2, {1, 1, 1, 1}), ElementsAre(0, 1, 0, 1));
}

// float32 of shapes (2,2), (2,1), (2,2), (1,3).
TEST(PlacementStrategyTest, LeastLoadedServerIsNext) {
  EXPECT_THAT(Greedy(2, {16, 8, 16, 12}), ElementsAre(0, 1, 1, 0));
}

// Computed with Python's hashlib: int(md5(b"w_0").hexdigest(), 16) % n.
TEST(PlacementStrategyTest, ServerByNameIsTheHashOfNameAndSeed) {
  EXPECT_THAT(ServerByName("w", 0, 1), IsOkAndHolds(0));
  EXPECT_THAT(ServerByName("w", 0, 7), IsOkAndHolds(4));
  EXPECT_THAT(ServerByName("w", 1, 7), IsOkAndHolds(6));
  EXPECT_THAT(ServerByName("hidden1/weights", 3, 1000), IsOkAndHolds(338));
}

}  // namespace
}  // namespace lockstep::chief
