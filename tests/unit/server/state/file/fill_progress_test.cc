#include "server/state/file/fill_progress.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;

TEST(FillProgressTest, CountsUntilItIsNotWantedAnyMore) {
  FillProgress progress;
  EXPECT_EQ(progress.total(), 0u);
  progress.Expect(100);
  progress.Expect(20);

  EXPECT_OK(progress.Advance(30));

  EXPECT_EQ(progress.done(), 30u);
  EXPECT_EQ(progress.total(), 120u);
  progress.Stop();
  EXPECT_THAT(progress.Advance(1), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace lockstep::server
