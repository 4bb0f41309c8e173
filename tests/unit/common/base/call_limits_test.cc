#include "common/base/call_limits.h"

#include <cstddef>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(CallLimitsTest, ATransferThatFillsItsCallsBadlyFitsIntoAConnection) {
  EXPECT_LT(2 * kCallsAtOnce, kCallsOfAConnection);
}

constexpr size_t kMiB = size_t{1} << 20;

TEST(CallLimitsTest, CallsAreOfTheUsualSizeUnlessTheyWouldBeTooMany) {
  EXPECT_EQ(CallBytes(100 * kMiB, kMiB), kMiB);
  EXPECT_EQ(CallBytes(1200 * kMiB, kMiB), 10 * kMiB);
}

TEST(CallLimitsTest, CallsBetweenProcessesThatShareMemoryAreFew) {
  EXPECT_EQ(MappedCallBytes(2 * kMiB, kMiB), kMiB);
  EXPECT_EQ(MappedCallBytes(48 * kMiB, kMiB), 3 * kMiB);
  EXPECT_EQ(MappedCallBytes(400 * kMiB, kMiB), 4 * kMiB);
  EXPECT_EQ(MappedCallBytes(1200 * kMiB, kMiB), 10 * kMiB);
  EXPECT_EQ(MappedCallBytes(48 * kMiB, 8 * kMiB), 8 * kMiB);
}

}  // namespace
}  // namespace lockstep
