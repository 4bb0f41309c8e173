#include "chief/page/chart.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChartTest, TicksAreRound) {
  EXPECT_DOUBLE_EQ(RoundTick(1, 4), 0.25);
  EXPECT_DOUBLE_EQ(RoundTick(0.9, 4), 0.25);
  EXPECT_DOUBLE_EQ(RoundTick(4, 4), 1);
  EXPECT_DOUBLE_EQ(RoundTick(1500, 4), 500);
  EXPECT_DOUBLE_EQ(RoundTick(7e-5, 4), 2e-5);
}

TEST(ChartTest, EachLineHasItsPointsAndItsNewestValue) {
  const std::string html = RenderChart(
      {.title = "Loss",
       .lines = {{"training", {{0, 0, 2}, {50, 0, 1}, {100, 0, 0.5}}},
                 {"test", {{100, 0, 1}}},
                 {"nothing", {}}}});
  EXPECT_THAT(html, HasSubstr("data-range=\"0 100 0.5 2\""));
  // The first point is at the left and at the top, the last one opposite.
  EXPECT_THAT(html, HasSubstr("points=\"46.0,8.0 200.0,89.3 354.0,130.0\""));
  EXPECT_THAT(html, HasSubstr("training <b>0.5</b>"));
  EXPECT_THAT(html, HasSubstr("<circle class=\"line1\""));
  EXPECT_THAT(html, Not(HasSubstr("nothing")));
}

TEST(ChartTest, AChartWithoutPointsIsEmpty) {
  EXPECT_EQ(RenderChart({.title = "Loss", .lines = {{"a", {}}}}), "");
}

TEST(ChartTest, ACurveThatDoesNotChangeIsInTheMiddle) {
  const std::string html =
      RenderChart({.title = "x", .lines = {{"a", {{5, 0, 0.1}, {6, 0, 0.1}}}}});
  EXPECT_THAT(html, HasSubstr("points=\"46.0,69.0 354.0,69.0\""));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(ChartTest, LabelsAreEscaped) {
  // Lines of one point and of two are drawn in different ways.
  for (const std::vector<CurvePoint>& points :
       {std::vector<CurvePoint>{{1, 0, 1}}, {{1, 0, 1}, {2, 0, 1}}}) {
    const std::string html =
        RenderChart({.title = "<u>", .lines = {{"\"<i>", points}}});
    EXPECT_THAT(html,
                Not(::testing::AnyOf(HasSubstr("<u>"), HasSubstr("\"<i>"))));
    EXPECT_THAT(html, HasSubstr("<span>&lt;u&gt;</span>"));
    EXPECT_THAT(html, HasSubstr(">&quot;&lt;i&gt; <b>"));
  }
}

TEST(ChartTest, ValuesHaveTheirUnits) {
  EXPECT_EQ(ValueText(Chart::Unit::kShare, 0.875), "87.5 %");
  EXPECT_EQ(ValueText(Chart::Unit::kSeconds, 0.0125), "12.5 ms");
  EXPECT_EQ(ValueText(Chart::Unit::kSeconds, 0), "0");
  EXPECT_EQ(ValueText(Chart::Unit::kCount, 75'313), "75.3k");
  EXPECT_EQ(ValueText(Chart::Unit::kFigure, 0.2084), "0.208");
}

}  // namespace
}  // namespace lockstep::chief
