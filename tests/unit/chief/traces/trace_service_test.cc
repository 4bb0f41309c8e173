#include "chief/traces/trace_service.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep::chief {
namespace {

TEST(TraceServiceTest, AHeartbeatBringsTheChiefsTime) {
  testing::ManualClock clock;
  MembershipTable members({{TaskType::kWorker, 0}}, absl::Seconds(10));
  SpanRecorder spans(8, clock);
  TraceService service("job", JobConfig(), members, spans, clock);
  v1::HeartbeatResponse response;
  service.FillHeartbeat({TaskType::kWorker, 0}, response);
  EXPECT_EQ(response.chief_time(), absl::ToUnixNanos(clock.Now()));
  EXPECT_FALSE(response.has_trace());
}

}  // namespace
}  // namespace lockstep::chief
