#include "deploy/cli/status/status_text.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

TEST(StatusTextTest, TheOldestWaitIsTheOneToShow) {
  JobStatus status;
  EXPECT_FALSE(LongestWait(status).has_value());

  status.waits = {{.owner = "a", .since = absl::Seconds(1)},
                  {.owner = "b", .since = absl::Seconds(9)},
                  {.owner = "c", .since = absl::Seconds(2)}};

  ASSERT_TRUE(LongestWait(status).has_value());
  EXPECT_EQ(LongestWait(status)->owner, "b");
}

}  // namespace
}  // namespace lockstep::cli
