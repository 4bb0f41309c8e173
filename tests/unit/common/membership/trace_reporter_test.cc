#include "common/membership/trace_reporter.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep {
namespace {

class TraceReporterTest : public ::testing::Test {
 protected:
  // An answer of a chief whose clock is 100 s ahead, after a round trip of 2 s.
  v1::HeartbeatResponse Answer(bool wants_trace) {
    v1::HeartbeatResponse answer;
    answer.set_chief_time(absl::ToUnixNanos(sent_ + absl::Seconds(101)));
    if (!wants_trace) return answer;
    answer.mutable_trace()->set_id(3);
    answer.mutable_trace()->set_max_spans(10);
    answer.mutable_trace()->set_at(
        absl::ToUnixNanos(sent_ + absl::Seconds(105)));
    return answer;
  }
  absl::Time received() const { return sent_ + absl::Seconds(2); }

  testing::ManualClock clock_;
  const absl::Time sent_ = clock_.Now();
  SpanRecorder spans_{8, clock_};
};

TEST_F(TraceReporterTest, ATraceIsDueAtTheChiefsMomentByTheOwnClock) {
  TraceReporter reporter({{TaskType::kWorker, 0}, &spans_});
  EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
  reporter.OnHeartbeat(Answer(true), sent_, received());
  EXPECT_EQ(reporter.due(), sent_ + absl::Seconds(5));
  reporter.OnHeartbeat(Answer(false), sent_, received());
  EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
}

TEST_F(TraceReporterTest, AReportIsDueOnceForEachTimeTheChiefAsks) {
  TraceReporter reporter({{TaskType::kWorker, 0}, &spans_});
  spans_.Add({.kind = SpanKind::kPush, .begin = 1, .end = 2});
  for (int asked = 0; asked < 2; ++asked) {
    reporter.OnHeartbeat(Answer(true), sent_, received());
    const v1::ReportTraceRequest report = reporter.TakeReport(v1::Identity());
    EXPECT_EQ(report.id(), 3);
    EXPECT_EQ(report.trace().task(), "worker 0");
    EXPECT_EQ(report.trace().spans_size(), 1);
    EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
  }
}

TEST_F(TraceReporterTest, AMemberWithoutSpansHasNoneToReport) {
  TraceReporter reporter({{TaskType::kEvaluator, 0}, nullptr});
  reporter.OnHeartbeat(Answer(true), sent_, received());
  EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace lockstep
