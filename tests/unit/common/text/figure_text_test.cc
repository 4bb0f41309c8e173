#include "common/text/figure_text.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(FormatSecondsTest, HasOneDigit) {
  EXPECT_EQ(FormatSeconds(absl::Milliseconds(61'270)), "61.3 s");
  EXPECT_EQ(FormatSeconds(absl::ZeroDuration()), "0.0 s");
}

TEST(FormatAgeTest, TakesTheUnitThatReadsBest) {
  EXPECT_EQ(FormatAge(absl::Milliseconds(240)), "0.2 s");
  EXPECT_EQ(FormatAge(absl::Milliseconds(9'960)), "10 s");
  EXPECT_EQ(FormatAge(absl::Seconds(95)), "95 s");
  EXPECT_EQ(FormatAge(absl::Minutes(12)), "12 min");
  EXPECT_EQ(FormatAge(absl::Minutes(204)), "3.4 h");
  EXPECT_EQ(FormatAge(absl::InfiniteDuration()), "inf h");
}

TEST(FormatClockTest, CountsLikeAClock) {
  EXPECT_EQ(FormatClock(absl::Seconds(12)), "0:12");
  EXPECT_EQ(FormatClock(absl::Milliseconds(59'100)), "1:00");
  EXPECT_EQ(FormatClock(absl::Seconds(3723)), "1:02:03");
  EXPECT_EQ(FormatClock(absl::Seconds(-5)), "0:00");
  EXPECT_EQ(FormatClock(absl::InfiniteDuration()), "--:--");
}

TEST(FormatCompactTest, KeepsThreeToFourDigits) {
  EXPECT_EQ(FormatCompact(0), "0");
  EXPECT_EQ(FormatCompact(950.4), "950");
  EXPECT_EQ(FormatCompact(12'345), "12.3k");
  EXPECT_EQ(FormatCompact(999'960), "1.0M");
  EXPECT_EQ(FormatCompact(3.4e9), "3.4G");
  EXPECT_EQ(FormatCompact(std::nan("")), "nan");
}

TEST(FormatFigureTest, HugeFiguresStayShort) {
  EXPECT_EQ(FormatFigure(0.31234, 4), "0.3123");
  EXPECT_EQ(FormatFigure(-2.5, 1), "-2.5");
  EXPECT_EQ(FormatFigure(1.5e30, 3), "1.500e+30");
  EXPECT_EQ(FormatFigure(std::nan(""), 3), "nan");
  EXPECT_EQ(FormatFigure(std::numeric_limits<double>::infinity(), 3), "inf");
}

}  // namespace
}  // namespace lockstep
