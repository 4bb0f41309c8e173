#include "common/wire/epoch_bounds.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(EpochBoundsTest, LargestAttemptLeavesRoomForTheNext) {
  EXPECT_THAT(CheckAttempt(0), IsOk());
  EXPECT_THAT(CheckAttempt(kLargestAttempt), IsOk());
  for (const int64_t attempt : {int64_t{-1}, kLargestAttempt + 1,
                                std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(CheckAttempt(attempt),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("attempt"),
                               HasSubstr(absl::StrCat(attempt)))));
  }
}

}  // namespace
}  // namespace lockstep
