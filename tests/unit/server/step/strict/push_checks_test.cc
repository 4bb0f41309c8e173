#include "server/step/strict/push_checks.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

class PushChecksTest : public ::testing::Test {
 protected:
  absl::Status Check(Push push, bool refuse = true, bool early = false) {
    return CheckPush(updater_, refuse, early, push);
  }
  static Push Of(int first, int count, float value = 1) {
    return PushOf({0, 1, 0, 1, 0}, 1, first, count, value);
  }

  FakePartUpdater updater_{2};
};

TEST_F(PushChecksTest, PartsThatTheServerLacksAreRefused) {
  EXPECT_OK(Check(Of(0, 2)));
  EXPECT_THAT(Check(Of(1, 2)), StatusIs(kInvalid, HasSubstr("parts 1 to 2")));
  EXPECT_THAT(Check(Of(-1, 1)), StatusIs(kInvalid));
  EXPECT_THAT(Check(Of(0, 0)), StatusIs(kInvalid));
}

TEST_F(PushChecksTest, GradientOfAnotherLengthIsRefusedUnlessItIsAbsent) {
  Push push = Of(0, 2);
  push.gradients[1].slices.clear();
  EXPECT_THAT(Check(push), StatusIs(kInvalid, HasSubstr("0 bytes")));

  push.gradients[1].absent = true;
  EXPECT_OK(Check(push));
}

TEST_F(PushChecksTest, ElementsOfALargePartAreLookedAtLater) {
  EXPECT_THAT(Check(Of(0, 2, NAN)), StatusIs(kInvalid));
  EXPECT_OK(Check(Of(0, 2, NAN), /*refuse=*/false));
  EXPECT_OK(Check(Of(0, 1, NAN)));
  EXPECT_THAT(Check(Of(0, 1, NAN), true, /*early=*/true), StatusIs(kInvalid));
}

TEST(WaitCountsTest, PartThatLacksTheMostCounts) {
  WaitCounts waits{.gradients = 4};
  waits.Add(/*copied=*/false, /*collected=*/3);
  waits.Add(false, 1);
  waits.Add(/*copied=*/true, 0);
  EXPECT_EQ(waits.open_parts, 2);
  EXPECT_EQ(waits.lacking, 3);
  EXPECT_EQ(waits.means, 1);
  EXPECT_EQ(TextOf(waits), "3 of 4 gradients of 2 parts");
}

// After a change of their number, or of a part that is being updated.
TEST(WaitCountsTest, MoreGradientsThanAPartNeedsAreNoneToWaitFor) {
  WaitCounts waits{.gradients = 2};
  waits.Add(/*copied=*/false, /*collected=*/3);
  EXPECT_EQ(waits.lacking, 0);
}

TEST(WaitCountsTest, MeansOfOtherMirrorsComeLast) {
  WaitCounts waits{.gradients = 2};
  EXPECT_EQ(TextOf(waits), "");
  waits.Add(/*copied=*/true, 0);
  EXPECT_EQ(TextOf(waits), "the means of 1 part from other mirrors");
}

}  // namespace
}  // namespace lockstep::server
