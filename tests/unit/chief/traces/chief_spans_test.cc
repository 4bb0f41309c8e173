#include "chief/traces/chief_spans.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;

TEST(ChiefSpansTest, RecordsTakesCommitsAndDeathsOfWorkers) {
  testing::ManualClock clock;
  SpanRecorder spans(8, clock);
  const int64_t began = spans.Now();
  clock.Advance(absl::Microseconds(1));
  RecordTake(spans, began, 2, 7, 3);
  RecordCommit(spans, began, 7, 3);
  RecordDeath(spans, "ps 1", 7);
  RecordDeath(spans, "worker x", 7);
  RecordDeath(spans, "worker 4", 7);
  EXPECT_THAT(spans.Newest(8), ElementsAre(Span{.kind = SpanKind::kDeath,
                                                .peer = 4,
                                                .step = 7,
                                                .begin = began + 1000,
                                                .end = began + 1000},
                                           Span{.kind = SpanKind::kTake,
                                                .attempt = 3,
                                                .peer = 2,
                                                .step = 7,
                                                .begin = began,
                                                .end = began + 1000},
                                           Span{.kind = SpanKind::kOrderCommit,
                                                .attempt = 3,
                                                .step = 7,
                                                .begin = began,
                                                .end = began + 1000}));
}

}  // namespace
}  // namespace lockstep::chief
