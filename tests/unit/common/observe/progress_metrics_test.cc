#include "common/observe/progress_metrics.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Progress SomeProgress() {
  Progress progress;
  progress.local_step = 7;
  progress.passes = 9;
  progress.accepted = 6;
  progress.stale = 3;
  progress.examples = 900;
  progress.waiting = absl::Milliseconds(1500);
  progress.loss = 0.25;
  return progress;
}

TEST(ProgressMetricsTest, EachFigureHasAMetric) {
  const std::string text =
      ProgressMetrics(kOwnProgress, {{{}, SomeProgress()}}).ToText();
  for (const char* line :
       {"lockstep_worker_local_step 7\n", "lockstep_worker_passes_total 9\n",
        "lockstep_worker_accepted_total 6\n", "lockstep_worker_stale_total 3\n",
        "lockstep_worker_examples_total 900\n",
        "lockstep_worker_waiting_seconds_total 1.5\n",
        "lockstep_worker_loss 0.25\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ProgressMetricsTest, LossIsThereWhenItIsRecentAndFinite) {
  Progress without = SomeProgress();
  without.loss = std::numeric_limits<double>::quiet_NaN();
  const std::string text =
      ProgressMetrics(kReportedProgress, {{{{"index", "0"}}, Progress()},
                                          {{{"index", "1"}}, without},
                                          {{{"index", "2"}}, SomeProgress()}})
          .ToText();
  EXPECT_THAT(text, HasSubstr("\nlockstep_member_loss{index=\"2\"} 0.25\n"));
  EXPECT_THAT(text, Not(HasSubstr("lockstep_member_loss{index=\"0\"}")));
  EXPECT_THAT(text, Not(HasSubstr("lockstep_member_loss{index=\"1\"}")));
}

TEST(ProgressMetricsTest, ChiefTellsNothingThatHeartbeatsDoNotReport) {
  const std::vector<WorkerProgress> workers = {{{}, SomeProgress()}};
  EXPECT_THAT(ProgressMetrics(kOwnProgress, workers).ToText(),
              HasSubstr("non_finite"));
  EXPECT_THAT(ProgressMetrics(kReportedProgress, workers).ToText(),
              Not(HasSubstr("non_finite")));
}

TEST(ProgressMetricsTest, WorkersOfOneNameStandTogether) {
  const MetricFamilies metrics = ProgressMetrics(
      kOwnProgress,
      {{{{"index", "0"}}, SomeProgress()}, {{{"index", "1"}}, SomeProgress()}});
  for (const auto& family : metrics.families()) {
    ASSERT_EQ(family.metric.size(), 2u) << family.name;
    EXPECT_EQ(family.metric[0].label.front().value, "0");
    EXPECT_EQ(family.metric[1].label.front().value, "1");
  }
}

}  // namespace
}  // namespace lockstep
