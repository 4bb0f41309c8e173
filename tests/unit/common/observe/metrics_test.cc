#include "common/observe/metrics.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(MetricsTest, MetricIsOneLineUnderItsHelpAndType) {
  EXPECT_EQ(FormatMetrics(
                {{{"steps_total", "Steps made.", Metric::Kind::kCounter, 12}}}),
            "# HELP steps_total Steps made.\n"
            "# TYPE steps_total counter\n"
            "steps_total 12\n");
}

TEST(MetricsTest, MetricsOfOneNameShareTheirHelp) {
  EXPECT_EQ(FormatMetrics({{{"loss",
                             "Loss.",
                             Metric::Kind::kGauge,
                             0.5,
                             {{"task", "worker"}, {"index", "0"}}},
                            {"loss",
                             "Loss.",
                             Metric::Kind::kGauge,
                             0.25,
                             {{"task", "worker"}, {"index", "1"}}}}}),
            "# HELP loss Loss.\n"
            "# TYPE loss gauge\n"
            "loss{task=\"worker\",index=\"0\"} 0.5\n"
            "loss{task=\"worker\",index=\"1\"} 0.25\n");
}

TEST(MetricsTest, LabelValuesAreEscaped) {
  EXPECT_EQ(
      FormatMetrics(
          {{{"m", "M.", Metric::Kind::kGauge, 1, {{"name", "a\"b\\c\nd"}}}}}),
      "# HELP m M.\n# TYPE m gauge\nm{name=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(MetricsTest, ValuesThatAreNoNumbersHavePrometheusNames) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(FormatMetrics({{{"m", "M.", Metric::Kind::kGauge, infinity},
                            {"m", "M.", Metric::Kind::kGauge, -infinity},
                            {"m", "M.", Metric::Kind::kGauge, nan}}}),
            "# HELP m M.\n# TYPE m gauge\nm +Inf\nm -Inf\nm NaN\n");
}

TEST(MetricsTest, LargeCountsKeepTheirLastDigit) {
  EXPECT_EQ(
      FormatMetrics({{{"m", "M.", Metric::Kind::kCounter, 9007199254740991.}}}),
      "# HELP m M.\n# TYPE m counter\nm 9007199254740991\n");
}

TEST(MetricsTest, LabelsOfTheProcessYieldToThoseOfAMetric) {
  std::vector<Metric> metrics = {
      {"m", "M.", Metric::Kind::kGauge, 1, {{"outcome", "stale"}}},
      {"n", "N.", Metric::Kind::kGauge, 1, {{"task", "ps"}, {"index", "7"}}}};

  AddLabels({{"job", "a"}, {"task", "chief"}, {"index", "0"}, {"zone", ""}},
            metrics);

  EXPECT_EQ(FormatMetrics(metrics),
            "# HELP m M.\n# TYPE m gauge\n"
            "m{job=\"a\",task=\"chief\",index=\"0\",outcome=\"stale\"} 1\n"
            "# HELP n N.\n# TYPE n gauge\n"
            "n{job=\"a\",task=\"ps\",index=\"7\"} 1\n");
}

TEST(MetricsTest, NoMetricsAreNoText) { EXPECT_EQ(FormatMetrics({}), ""); }

}  // namespace
}  // namespace lockstep
