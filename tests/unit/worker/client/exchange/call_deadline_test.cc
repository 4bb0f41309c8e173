#include "worker/client/exchange/call_deadline.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(CallDeadlineTest, SmallCallsEndSoonAndLargeOnesWhenASlowLineHasSentThem) {
  EXPECT_EQ(CallDeadline(0), absl::Seconds(10));
  EXPECT_LT(CallDeadline(64 << 10), absl::Seconds(11));
  EXPECT_EQ(CallDeadline(20 << 20), absl::Seconds(30));
  EXPECT_EQ(CallDeadline(size_t{1} << 30), absl::Seconds(1034));
}

}  // namespace
}  // namespace lockstep::worker
