#include "chief/traces/trace_demand.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep::chief {
namespace {

constexpr TaskId kWorker{TaskType::kWorker, 0};

TEST(TraceDemandTest, AHeartbeatBringsTheChiefsTime) {
  testing::ManualClock clock;
  TraceTable table;
  v1::HeartbeatResponse response;
  AddTraceDemand(table, kWorker, clock, response);
  EXPECT_EQ(response.chief_time(), absl::ToUnixNanos(clock.Now()));
  EXPECT_FALSE(response.has_trace());
}

TEST(TraceDemandTest, ATaskOfTheTraceIsAskedAndOthersAreNot) {
  testing::ManualClock clock;
  TraceTable table;
  const absl::Time at = clock.Now() + absl::Seconds(2);
  const uint64_t id = table.Begin({"worker 0"}, at);
  v1::HeartbeatResponse asked;
  AddTraceDemand(table, kWorker, clock, asked);
  EXPECT_EQ(asked.trace().id(), id);
  EXPECT_EQ(asked.trace().at(), absl::ToUnixNanos(at));
  EXPECT_GE(asked.trace().max_spans(), TraceTable::kFewestSpans);
  v1::HeartbeatResponse other;
  AddTraceDemand(table, {TaskType::kWorker, 1}, clock, other);
  EXPECT_FALSE(other.has_trace());
}

}  // namespace
}  // namespace lockstep::chief
