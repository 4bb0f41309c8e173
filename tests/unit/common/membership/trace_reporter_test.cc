#include "common/membership/trace_reporter.h"

#include "absl/time/time.h"
#include "common/membership/coordinator_calls.h"
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
  CoordinatorCalls calls_{"127.0.0.1:1"};  // no process listens there
};

TEST_F(TraceReporterTest, ATraceIsDueAtTheChiefsMomentByTheOwnClock) {
  TraceReporter reporter({{TaskType::kWorker, 0}, &spans_, &clock_}, calls_);
  EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
  reporter.OnHeartbeat(Answer(true), sent_, received());
  EXPECT_EQ(reporter.due(), sent_ + absl::Seconds(5));
  reporter.OnHeartbeat(Answer(false), sent_, received());
  EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
}

TEST_F(TraceReporterTest, AReportThatFailsIsNotDueAgainByItself) {
  TraceReporter reporter({{TaskType::kWorker, 0}, &spans_, &clock_}, calls_);
  reporter.OnHeartbeat(Answer(true), sent_, received());
  reporter.Report(v1::Identity());
  EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
}

TEST_F(TraceReporterTest, AMemberWithoutSpansHasNoneToReport) {
  TraceReporter reporter({{TaskType::kEvaluator, 0}, nullptr, &clock_}, calls_);
  reporter.OnHeartbeat(Answer(true), sent_, received());
  EXPECT_EQ(reporter.due(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace lockstep
