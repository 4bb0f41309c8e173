#include "common/metrics/metric_families.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(MetricFamiliesTest, SampleIsOneLineUnderItsHelpAndType) {
  MetricFamilies metrics;
  metrics.Counter("steps_total", "Steps made.", 12);
  EXPECT_EQ(metrics.ToText(),
            "# HELP steps_total Steps made.\n"
            "# TYPE steps_total counter\n"
            "steps_total 12\n");
}

TEST(MetricFamiliesTest, SamplesOfOneNameStandTogether) {
  MetricFamilies metrics;
  metrics.Gauge("loss", "Loss.", 0.5, {{"task", "worker"}, {"index", "0"}});
  metrics.Gauge("other", "Other.", 1);
  MetricFamilies more;
  more.Gauge("loss", "Loss.", 0.25, {{"task", "worker"}, {"index", "1"}});
  metrics.Add(more);
  EXPECT_EQ(metrics.ToText(),
            "# HELP loss Loss.\n"
            "# TYPE loss gauge\n"
            "loss{task=\"worker\",index=\"0\"} 0.5\n"
            "loss{task=\"worker\",index=\"1\"} 0.25\n"
            "# HELP other Other.\n"
            "# TYPE other gauge\n"
            "other 1\n");
}

TEST(MetricFamiliesTest, LabelValuesAreEscaped) {
  MetricFamilies metrics;
  metrics.Gauge("m", "M.", 1, {{"name", "a\"b\\c\nd"}});
  EXPECT_EQ(metrics.ToText(),
            "# HELP m M.\n# TYPE m gauge\nm{name=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(MetricFamiliesTest, ValuesThatAreNoNumbersHavePrometheusNames) {
  const double infinity = std::numeric_limits<double>::infinity();
  MetricFamilies metrics;
  metrics.Gauge("m", "M.", infinity);
  metrics.Gauge("m", "M.", -infinity);
  metrics.Gauge("m", "M.", std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(metrics.ToText(), HasSubstr("m +Inf\nm -Inf\nm Nan\n"));
}

TEST(MetricFamiliesTest, LargeCountsKeepTheirLastDigit) {
  MetricFamilies metrics;
  metrics.Counter("m", "M.", 9007199254740991.);
  EXPECT_THAT(metrics.ToText(), HasSubstr("m 9007199254740991\n"));
}

TEST(MetricFamiliesTest, LabelsOfTheProcessYieldToThoseOfASample) {
  MetricFamilies metrics;
  metrics.Gauge("m", "M.", 1, {{"outcome", "stale"}});
  metrics.Gauge("n", "N.", 1, {{"task", "ps"}, {"index", "7"}});

  metrics.AddLabels(
      {{"job", "a"}, {"task", "chief"}, {"index", "0"}, {"zone", ""}});

  EXPECT_EQ(metrics.ToText(),
            "# HELP m M.\n# TYPE m gauge\n"
            "m{job=\"a\",task=\"chief\",index=\"0\",outcome=\"stale\"} 1\n"
            "# HELP n N.\n# TYPE n gauge\n"
            "n{job=\"a\",task=\"ps\",index=\"7\"} 1\n");
}

TEST(MetricFamiliesTest, NoMetricsAreNoText) {
  EXPECT_EQ(MetricFamilies().ToText(), "");
}

}  // namespace
}  // namespace lockstep
