#include "common/text/progress_text.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ProgressTextTest, SaysHowFarAndHowLongYet) {
  EXPECT_EQ(ProgressText(40, 100, 8), ", 40 %, 12 s to go");
  EXPECT_EQ(ProgressText(50, 100, 600), ", 50 %, 10 min to go");
  EXPECT_EQ(ProgressText(1, 4, 3600), ", 25 %, 3.0 h to go");
  EXPECT_EQ(ProgressText(100, 100, 9), ", 100 %, 0 s to go");
  EXPECT_EQ(ProgressText(500, 100, 9), ", 100 %, 0 s to go");
}

TEST(ProgressTextTest, SaysNoTimeBeforeItCanKnow) {
  EXPECT_EQ(ProgressText(40, 100, 0.5), ", 40 %");
  EXPECT_EQ(ProgressText(0, 100, 30), ", 0 %");
  EXPECT_EQ(ProgressText(9, 1000, 30), ", 0 %");
  EXPECT_EQ(ProgressText(1, 100, 1e9), ", 1 %");
}

TEST(ProgressTextTest, SaysNothingWhereNothingIsKnown) {
  EXPECT_EQ(ProgressText(-1, 100, 30), "");
  EXPECT_EQ(ProgressText(5, 0, 30), "");
}

}  // namespace
}  // namespace lockstep
