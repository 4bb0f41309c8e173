#include "common/text/duration_text.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(DurationTextTest, CutsOffWhatIsBelowTheUnit) {
  EXPECT_EQ(DurationText(absl::Milliseconds(62590)), "1m2.5s");
  EXPECT_EQ(DurationText(absl::Milliseconds(62590), absl::Seconds(1)), "1m2s");
}

TEST(DurationTextTest, AZeroHasAUnit) {
  EXPECT_EQ(DurationText(absl::ZeroDuration()), "0s");
  EXPECT_EQ(DurationText(absl::Milliseconds(99)), "0s");
}

}  // namespace
}  // namespace lockstep
