#include "worker/loop/progress_meter.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ManualClock;

TEST(ProgressMeterTest, AnActivityMaySayHowFarItIs) {
  const testing::ManualClock clock;
  ProgressMeter meter(clock);
  std::string more;
  meter.Begin("reads its data", Phase::kOther, [&more] { return more; });
  EXPECT_EQ(meter.Get().activity, "reads its data");
  more = "reads train.npy, 40 %";
  EXPECT_EQ(meter.Get().activity, "reads train.npy, 40 %");
  meter.Begin("waits for the variables", Phase::kWait);
  EXPECT_EQ(meter.Get().activity, "waits for the variables");
}

TEST(ProgressMeterTest, OnlyWaitingActivitiesCountAsWaiting) {
  ManualClock clock;
  ProgressMeter meter(clock);

  meter.Begin("pulls", Phase::kPull);
  clock.Advance(absl::Seconds(2));
  meter.Begin("computes", Phase::kCompute);
  clock.Advance(absl::Seconds(5));
  meter.Begin("pushes", Phase::kPush);
  clock.Advance(absl::Seconds(1));

  EXPECT_EQ(meter.Get().waiting, absl::Seconds(3));
  EXPECT_EQ(meter.Get().activity, "pushes");
  EXPECT_EQ(meter.Get().activity_age, absl::Seconds(1));
}

TEST(ProgressMeterTest, KindOfTheActivityFollowsItsPhase) {
  const ManualClock clock;
  ProgressMeter meter(clock);
  EXPECT_EQ(meter.Get().activity_kind, ActivityKind::kOther);

  meter.Begin("computes what a program names", Phase::kOther);
  EXPECT_EQ(meter.Get().activity_kind, ActivityKind::kOther);
  for (const SpanKind phase : {SpanKind::kForward, SpanKind::kBackward}) {
    meter.Begin(phase, 7);
    EXPECT_EQ(meter.Get().activity_kind, ActivityKind::kComputes);
  }
  for (const SpanKind phase :
       {SpanKind::kPull, SpanKind::kPush, SpanKind::kToken}) {
    meter.Begin(phase, 7);
    EXPECT_EQ(meter.Get().activity_kind, ActivityKind::kWaits);
  }
}

// The next incarnation of a process is one that has done nothing yet.
TEST(ProgressMeterTest, AnotherIncarnationCountsFromZero) {
  ManualClock clock;
  ProgressMeter meter(clock);
  meter.Begin(SpanKind::kForward, 3, 0, 1);
  clock.Advance(absl::Seconds(1));
  meter.Computed(3, 0.5, 8, 2);
  meter.Begin(SpanKind::kPush, 3);
  clock.Advance(absl::Seconds(1));
  meter.Accepted();
  meter.BeginAnew();

  Progress progress = meter.Get();
  EXPECT_EQ(progress.activity, "starts");
  EXPECT_EQ(progress.passes + progress.accepted + progress.examples, 0);
  EXPECT_EQ(progress.micro_batches + progress.pushes, 0);
  EXPECT_EQ(progress.waiting + progress.pushes_time, absl::ZeroDuration());
  EXPECT_TRUE(progress.pass_times.empty());

  meter.Begin(SpanKind::kForward, 3);
  clock.Advance(absl::Seconds(2));
  meter.Computed(3, 0.5, 8);
  progress = meter.Get();
  EXPECT_EQ(progress.passes, 1);
  EXPECT_THAT(progress.pass_times,
              ::testing::ElementsAre(PassTime{absl::Seconds(2)}));
}

TEST(ProgressMeterTest, MicroBatchesAndPushesHaveTheirTimes) {
  ManualClock clock;
  ProgressMeter meter(clock);
  const auto spend = [&](SpanKind phase, int seconds) {
    meter.Begin(phase, 3);
    clock.Advance(absl::Seconds(seconds));
  };
  spend(SpanKind::kForward, 1);
  spend(SpanKind::kAnnounce, 2);
  spend(SpanKind::kBackward, 4);
  meter.Computed(3, 0, 1, /*micro_batches=*/4);
  spend(SpanKind::kPush, 8);
  spend(SpanKind::kToken, 16);
  spend(SpanKind::kForward, 32);
  meter.Dropped();

  const Progress progress = meter.Get();

  EXPECT_EQ(progress.micro_batches, 4);
  EXPECT_EQ(progress.micro_batches_time, absl::Seconds(5));
  EXPECT_EQ(progress.pushes, 1);
  EXPECT_EQ(progress.pushes_time, absl::Seconds(10));
}

TEST(ProgressMeterTest, EachPassHasItsTimesByPhase) {
  ManualClock clock;
  std::vector<PhaseTimes> passes;
  ProgressMeter meter(clock, nullptr, [&](const PhaseTimes& times) {
    passes.push_back(times);
  });
  const auto spend = [&](Phase phase, int seconds) {
    meter.Begin(std::string(PhaseName(phase)), phase);
    clock.Advance(absl::Seconds(seconds));
  };

  spend(Phase::kPull, 1);
  spend(Phase::kCompute, 2);
  spend(Phase::kWait, 3);
  spend(Phase::kCompute, 4);
  spend(Phase::kPush, 5);
  meter.Accepted();
  spend(Phase::kOther, 6);
  spend(Phase::kWait, 7);
  meter.Stale();
  meter.Dropped();

  const auto times = [](int wait, int pull, int compute, int push, int other) {
    return PhaseTimes{absl::Seconds(wait), absl::Seconds(pull),
                      absl::Seconds(compute), absl::Seconds(push),
                      absl::Seconds(other)};
  };
  EXPECT_THAT(passes,
              ::testing::ElementsAre(times(3, 1, 6, 5, 0), times(7, 0, 0, 0, 6),
                                     times(0, 0, 0, 0, 0)));
  EXPECT_EQ(meter.Get().waiting, absl::Seconds(16));
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

// A slow worker's passes are dropped one after the other, while its job learns.
TEST(ProgressMeterTest, LossOfAPassThatIsLongAgoIsNotReported) {
  ManualClock clock;
  ProgressMeter meter(clock);
  meter.Begin(SpanKind::kForward, 3);
  meter.Computed(3, 0.5, 100);

  meter.Begin(SpanKind::kForward, 3 + ProgressMeter::kRecentSteps);
  EXPECT_EQ(meter.Get().loss, 0.5);
  meter.Dropped();
  meter.Begin(SpanKind::kForward, 4 + ProgressMeter::kRecentSteps);
  EXPECT_TRUE(std::isnan(meter.Get().loss));

  meter.Computed(4 + ProgressMeter::kRecentSteps, 0.25, 100);
  EXPECT_EQ(meter.Get().loss, 0.25);
}

TEST(ProgressMeterTest, LossIsReportedAfterTheJobWentBackToAnEarlierStep) {
  ManualClock clock;
  ProgressMeter meter(clock);
  meter.Begin(SpanKind::kForward, 300);
  meter.Computed(300, 0.5, 100);
  meter.Begin(SpanKind::kForward, 100);
  meter.Computed(100, 0.75, 100);

  EXPECT_EQ(meter.Get().loss, 0.75);
}

TEST(ProgressMeterTest, PassTimesLeaveWaitsOut) {
  ManualClock clock;
  ProgressMeter meter(clock);
  const auto spend = [&](const std::string& activity, Phase phase, int ms) {
    meter.Begin(activity, phase);
    clock.Advance(absl::Milliseconds(ms));
  };

  clock.Advance(absl::Seconds(9));  // it starts
  spend("pulls", Phase::kPull, 7);
  spend("computes", Phase::kCompute, 20);
  spend("waits for values", Phase::kWait, 5);
  spend("computes", Phase::kCompute, 30);
  meter.Computed(3, 0.5, 100);
  spend("pushes", Phase::kPush, 6);
  spend("computes", Phase::kCompute, 40);
  meter.Dropped();
  spend("computes", Phase::kCompute, 8);

  const Progress progress = meter.Get();
  EXPECT_THAT(progress.pass_times,
              ::testing::ElementsAre(PassTime{absl::Milliseconds(50), false},
                                     PassTime{absl::Milliseconds(40), true}));
  EXPECT_EQ(progress.pass_age, absl::Milliseconds(8));
  EXPECT_EQ(progress.waiting, absl::Milliseconds(18));
}

TEST(ProgressMeterTest, OnlyTheNewestPassTimesAreKept) {
  ManualClock clock;
  ProgressMeter meter(clock);

  for (int pass = 1; pass <= 40; ++pass) {
    meter.Begin("computes", Phase::kCompute);
    clock.Advance(absl::Milliseconds(pass));
    meter.Computed(pass, 0, 1);
  }

  const Progress progress = meter.Get();
  ASSERT_EQ(progress.pass_times.size(), Progress::kPassTimes);
  EXPECT_EQ(progress.pass_times.front().computed, absl::Milliseconds(9));
  EXPECT_EQ(progress.pass_times.back().computed, absl::Milliseconds(40));
}

TEST(ProgressMeterTest, AFigureReplacesAnEarlierOneOfItsName) {
  const ManualClock clock;
  ProgressMeter meter(clock);

  EXPECT_OK(meter.Report({"norm", 1}));
  EXPECT_OK(meter.Report({"rate", 2}));
  EXPECT_OK(meter.Report({"norm", 3}));
  EXPECT_FALSE(meter.Report({"no name", 4}).ok());

  EXPECT_THAT(
      meter.Get().figures,
      ::testing::ElementsAre(NamedFigure{"norm", 3}, NamedFigure{"rate", 2}));
}

TEST(ProgressMeterTest, PhasesAreSpansAndTextsForPeople) {
  testing::ManualClock clock;
  SpanRecorder spans(16, clock);
  ProgressMeter meter(clock, &spans);
  const int64_t began = spans.Now();

  meter.Begin(SpanKind::kPull, 7);
  EXPECT_EQ(meter.Get().activity, "pulls step 7");
  clock.Advance(absl::Microseconds(2));
  meter.Begin(SpanKind::kForward, 7);
  EXPECT_EQ(meter.Get().activity, "computes step 8");
  clock.Advance(absl::Microseconds(3));
  meter.Begin(SpanKind::kPush, 7, 2);
  EXPECT_EQ(meter.Get().activity, "pushes step 8");
  clock.Advance(absl::Microseconds(4));
  meter.Begin("leaves", Phase::kOther);
  clock.Advance(absl::Microseconds(5));
  meter.Begin(SpanKind::kToken, 7);
  EXPECT_EQ(meter.Get().activity, "waits for a token after step 8");

  EXPECT_EQ(meter.Get().waiting, absl::Microseconds(6));
  EXPECT_THAT(spans.Newest(16),
              ::testing::ElementsAre(Span{.kind = SpanKind::kPull,
                                          .step = 7,
                                          .begin = began,
                                          .end = began + 2000},
                                     Span{.kind = SpanKind::kForward,
                                          .step = 7,
                                          .begin = began + 2000,
                                          .end = began + 5000},
                                     Span{.kind = SpanKind::kPush,
                                          .attempt = 2,
                                          .step = 7,
                                          .begin = began + 5000,
                                          .end = began + 9000}));
}

}  // namespace
}  // namespace lockstep::worker
