#include "chief/traces/trace_table.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/trace/span_recorder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kGone = absl::StatusCode::kFailedPrecondition;

absl::Time At(int second) { return absl::FromUnixSeconds(1000 + second); }

TaskTrace Of(const std::string& task, size_t spans = 1) {
  TaskTrace trace{.task = task};
  trace.spans.resize(spans);
  return trace;
}

TEST(TraceTableTest, AsksEachTaskUntilItHasReported) {
  TraceTable table;
  EXPECT_FALSE(table.WantedFrom("ps 0", At(0)).has_value());
  const uint64_t id = table.Begin({"ps 0", "worker 1"}, At(5));
  const auto wanted = table.WantedFrom("worker 1", At(0));
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->id, id);
  EXPECT_EQ(wanted->at, At(5));
  EXPECT_FALSE(table.WantedFrom("worker 2", At(0)).has_value());
  EXPECT_OK(table.Report(id, Of("worker 1"), At(6)));
  EXPECT_FALSE(table.WantedFrom("worker 1", At(6)).has_value());
  EXPECT_TRUE(table.WantedFrom("ps 0", At(6)).has_value());
}

TEST(TraceTableTest, ReturnsWhatTasksHandedIn) {
  TraceTable table;
  const uint64_t id = table.Begin({"ps 0", "worker 1"}, At(5));
  ASSERT_OK(table.Report(id, Of("ps 0", 3), At(6)));
  const auto trace = table.Get(id, "ps 0", At(6));
  ASSERT_OK(trace);
  ASSERT_TRUE(trace->has_value());
  EXPECT_EQ((*trace)->spans.size(), 3u);
  const auto none = table.Get(id, "worker 1", At(6));
  ASSERT_OK(none);
  EXPECT_FALSE(none->has_value());
  EXPECT_THAT(table.Get(id, "worker 9", At(6)).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(TraceTableTest, ARepeatedReportChangesNothing) {
  TraceTable table;
  const uint64_t id = table.Begin({"ps 0"}, At(5));
  ASSERT_OK(table.Report(id, Of("ps 0", 3), At(6)));
  ASSERT_OK(table.Report(id, Of("ps 0", 1), At(6)));
  EXPECT_EQ((*table.Get(id, "ps 0", At(6)))->spans.size(), 3u);
}

TEST(TraceTableTest, ALaterTraceReplacesTheEarlierOne) {
  TraceTable table;
  const uint64_t first = table.Begin({"ps 0"}, At(5));
  const uint64_t second = table.Begin({"ps 0"}, At(7));
  EXPECT_NE(first, second);
  EXPECT_THAT(table.Report(first, Of("ps 0"), At(6)), StatusIs(kGone));
  EXPECT_THAT(table.Get(first, "ps 0", At(6)).status(), StatusIs(kGone));
  EXPECT_OK(table.Report(second, Of("ps 0"), At(6)));
}

TEST(TraceTableTest, AnOldTraceIsForgotten) {
  TraceTable table;
  const uint64_t id = table.Begin({"ps 0", "ps 1"}, At(5));
  ASSERT_OK(table.Report(id, Of("ps 0"), At(6)));
  const absl::Time last = At(5) + TraceTable::kKept;
  EXPECT_OK(table.Get(id, "ps 0", last));
  EXPECT_TRUE(table.WantedFrom("ps 1", last).has_value());
  const absl::Time late = At(6) + TraceTable::kKept;
  EXPECT_FALSE(table.WantedFrom("ps 1", late).has_value());
  EXPECT_THAT(table.Get(id, "ps 0", late).status(), StatusIs(kGone));
  EXPECT_THAT(table.Report(id, Of("ps 0"), late), StatusIs(kGone));
}

TEST(TraceTableTest, MemoryIsSharedOutAmongTheTasks) {
  TraceTable table;
  table.Begin({"ps 0"}, At(5));
  EXPECT_EQ(table.WantedFrom("ps 0", At(0))->max_spans, TraceTable::kMostSpans);
  std::vector<std::string> tasks;
  for (int i = 0; i < 1000; ++i) tasks.push_back("worker " + std::to_string(i));
  table.Begin(tasks, At(5));
  const auto wanted = table.WantedFrom("worker 7", At(0));
  const size_t all = wanted->max_spans * sizeof(Span) * tasks.size();
  EXPECT_LE(all, TraceTable::kMaxBytes);
  // None of it is left over but what does not divide.
  EXPECT_GT(all + sizeof(Span) * tasks.size(), TraceTable::kMaxBytes);
  for (int i = 1000; i < 100'000; ++i) {
    tasks.push_back("worker " + std::to_string(i));
  }
  table.Begin(tasks, At(5));
  EXPECT_EQ(table.WantedFrom("worker 7", At(0))->max_spans,
            TraceTable::kFewestSpans);
}

TEST(TraceTableTest, MoreSpansThanWereAskedForAreRefused) {
  TraceTable table;
  const uint64_t id = table.Begin({"ps 0"}, At(5));
  const size_t most = TraceTable::kMostSpans + SpanRecorder::kRareSpans;
  EXPECT_THAT(table.Report(id, Of("ps 0", most + 1), At(6)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("; at most " + std::to_string(most))));
  EXPECT_TRUE(table.WantedFrom("ps 0", At(6)).has_value());
  EXPECT_OK(table.Report(id, Of("ps 0", most), At(6)));
  EXPECT_THAT(table.Report(id, Of("ps 7"), At(6)),
              StatusIs(kGone, HasSubstr("ps 7 is not asked")));
}

}  // namespace
}  // namespace lockstep::chief
