#include "worker/client/exchange/retry_pause.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(RetryPauseTest, DoublesUpToTheLongest) {
  RetryPause pause;
  EXPECT_EQ(pause.Next(), absl::Milliseconds(100));
  EXPECT_EQ(pause.Next(), absl::Milliseconds(200));
  EXPECT_EQ(pause.Next(), absl::Milliseconds(300));
  EXPECT_EQ(pause.Next(), RetryPause::kLongest);
}

}  // namespace
}  // namespace lockstep::worker
