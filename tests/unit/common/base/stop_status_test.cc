#include "common/base/stop_status.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(StopStatusTest, StopIsACancellationWithItsReason) {
  const absl::Status stopped = StoppedStatus("enough", /*hold=*/false);
  EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(stopped.message(), "enough");
}

TEST(StopStatusTest, OnlyAStopForGoodIsHeld) {
  EXPECT_TRUE(IsHeld(StoppedStatus("enough", /*hold=*/true)));
  EXPECT_FALSE(IsHeld(StoppedStatus("enough", /*hold=*/false)));
  EXPECT_FALSE(IsHeld(absl::CancelledError("enough")));
  EXPECT_FALSE(IsHeld(absl::OkStatus()));
}

}  // namespace
}  // namespace lockstep
