#include "server/step/longest_waits.h"

#include "chief/servers/call_deadline.h"
#include "gtest/gtest.h"
#include "worker/client/exchange/call_deadline.h"

namespace lockstep::server {
namespace {

// A worker that has waited to its deadline takes the server for dead.
TEST(LongestWaitsTest, EndWithinTheDeadlinesOfWorkersCalls) {
  EXPECT_LT(kLongestTokenWait + kLookForOldCalls, worker::CallDeadline(0) / 2);
  EXPECT_LT(kLongestCommitWait + kLookForOldCalls, worker::CallDeadline(0) / 2);
}

// The chief, too, would take the server for dead.
TEST(LongestWaitsTest, EndWithinTheDeadlineOfTheChiefsCalls) {
  EXPECT_LT(kLongestTake + kLookForOldCalls, chief::kCallDeadline / 2);
}

TEST(LongestWaitsTest, TheChiefLearnsOfTheStepBeforeWorkersAskAgain) {
  EXPECT_LT(kLongestTake, kLongestTokenWait);
}

}  // namespace
}  // namespace lockstep::server
