#include "common/trace/span_recorder.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SpanTimerTest, RecordsFromItsBeginningToItsEnd) {
  testing::ManualClock clock;
  SpanRecorder recorder(8, clock);
  const int64_t began = recorder.Now();
  {
    const SpanTimer timer(&recorder, {.kind = SpanKind::kPull, .step = 4});
    clock.Advance(absl::Microseconds(3));
  }
  EXPECT_THAT(recorder.Newest(8), ElementsAre(Span{.kind = SpanKind::kPull,
                                                   .step = 4,
                                                   .begin = began,
                                                   .end = began + 3000}));
}

TEST(SpanTimerTest, EndsOnce) {
  testing::ManualClock clock;
  SpanRecorder recorder(8, clock);
  {
    SpanTimer timer(&recorder, {.kind = SpanKind::kUpdate});
    timer.End();
    clock.Advance(absl::Seconds(1));
  }
  ASSERT_THAT(recorder.Newest(8), SizeIs(1));
  EXPECT_EQ(recorder.Newest(8)[0].end, recorder.Newest(8)[0].begin);
}

TEST(SpanTimerTest, ADroppedTimerRecordsNothing) {
  testing::ManualClock clock;
  SpanRecorder recorder(8, clock);
  {
    SpanTimer timer(&recorder, {.kind = SpanKind::kReadData});
    timer.Drop();
  }
  EXPECT_THAT(recorder.Newest(8), IsEmpty());
}

TEST(SpanTimerTest, WithoutARecorderNothingHappens) {
  SpanTimer timer(nullptr, {.kind = SpanKind::kReadData});
  timer.End();
}

TEST(SpanRecorderTest, StepsDoNotDisplaceDeathsAndCheckpoints) {
  testing::ManualClock clock;
  SpanRecorder recorder(2, clock);
  recorder.Add({.kind = SpanKind::kDeath, .peer = 1});
  recorder.Add({.kind = SpanKind::kCheckpointCopy, .step = 7});
  for (int step = 0; step < 9; ++step) {
    recorder.Add({.kind = SpanKind::kUpdate, .step = step});
  }
  const std::vector<Span> spans = recorder.Newest(10);
  ASSERT_THAT(spans, SizeIs(4));
  EXPECT_EQ(spans[0].kind, SpanKind::kDeath);
  EXPECT_EQ(spans[1].kind, SpanKind::kCheckpointCopy);
  EXPECT_EQ(spans[2].step, 7);
  EXPECT_EQ(spans[3].step, 8);
}

TEST(SpanRecorderTest, EachRoleOfAProcessHasOne) {
  using Role = SpanRecorder::Role;
  EXPECT_EQ(&SpanRecorder::Of(Role::kWorker), &SpanRecorder::Of(Role::kWorker));
  EXPECT_NE(&SpanRecorder::Of(Role::kWorker), &SpanRecorder::Of(Role::kServer));
  EXPECT_NE(&SpanRecorder::Of(Role::kServer), &SpanRecorder::Of(Role::kChief));
}

}  // namespace
}  // namespace lockstep
