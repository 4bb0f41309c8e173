#include "common/base/call_limits.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(CallLimitsTest, ATransferThatFillsItsCallsBadlyFitsIntoAConnection) {
  EXPECT_LT(2 * kCallsAtOnce, kCallsOfAConnection);
}

}  // namespace
}  // namespace lockstep
