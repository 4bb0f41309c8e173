#include "server/step/longest_waits.h"

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

// A caller that has waited to its deadline takes the server for dead. Workers
// and chiefs set 10 s.
TEST(LongestWaitsTest, EndWithinTheDeadlinesOfTheirCalls) {
  constexpr absl::Duration kCallDeadline = absl::Seconds(10);
  for (const absl::Duration wait :
       {kLongestTokenWait, kLongestTake, kLongestCommitWait}) {
    EXPECT_LT(wait + kLookForOldCalls, kCallDeadline / 2);
  }
}

TEST(LongestWaitsTest, TheChiefLearnsOfTheStepBeforeWorkersAskAgain) {
  EXPECT_LT(kLongestTake, kLongestTokenWait);
}

}  // namespace
}  // namespace lockstep::server
