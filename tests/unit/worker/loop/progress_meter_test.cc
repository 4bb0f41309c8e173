#include "worker/loop/progress_meter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ManualClock;

TEST(ProgressMeterTest, OnlyWaitingActivitiesCountAsWaiting) {
  ManualClock clock;
  ProgressMeter meter(clock);

  meter.Begin("pulls", true);
  clock.Advance(absl::Seconds(2));
  meter.Begin("computes", false);
  clock.Advance(absl::Seconds(5));
  meter.Begin("pushes", true);
  clock.Advance(absl::Seconds(1));

  EXPECT_EQ(meter.Get().waiting, absl::Seconds(3));
  EXPECT_EQ(meter.Get().activity, "pushes");
  EXPECT_EQ(meter.Get().activity_age, absl::Seconds(1));
}

TEST(ProgressMeterTest, CountsPassesAndWhatBecameOfThem) {
  ManualClock clock;
  ProgressMeter meter(clock);

  meter.Computed(3, 0.5, 100);
  meter.Accepted();
  meter.Computed(4, 0.25, 100);
  meter.Stale();
  meter.Duplicates(2);
  meter.Dropped();

  const Progress progress = meter.Get();
  EXPECT_EQ(progress.passes, 3);
  EXPECT_EQ(progress.local_step, 4);
  EXPECT_EQ(progress.loss, 0.25);
  EXPECT_EQ(progress.examples, 200);
  EXPECT_EQ(progress.computed, 2);
  EXPECT_EQ(progress.accepted, 1);
  EXPECT_EQ(progress.stale, 2);
  EXPECT_EQ(progress.duplicate, 2);
}

TEST(ProgressMeterTest, AFigureReplacesAnEarlierOneOfItsName) {
  ProgressMeter meter(Clock::Real());

  EXPECT_OK(meter.Report({"norm", 1}));
  EXPECT_OK(meter.Report({"rate", 2}));
  EXPECT_OK(meter.Report({"norm", 3}));
  EXPECT_FALSE(meter.Report({"no name", 4}).ok());

  EXPECT_THAT(
      meter.Get().figures,
      ::testing::ElementsAre(NamedFigure{"norm", 3}, NamedFigure{"rate", 2}));
}

}  // namespace
}  // namespace lockstep::worker
