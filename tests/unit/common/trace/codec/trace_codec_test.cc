#include "common/trace/codec/trace_codec.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "common/trace/remedy_limits.h"
#include "common/trace/task_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TaskTrace SomeTrace() {
  TaskTrace trace{.task = "worker 1", .host = "a"};
  trace.clock = {-5, 7};
  trace.spans = {{.kind = SpanKind::kReceive,
                  .flags = Span::kShared,
                  .attempt = 3,
                  .part = 0,
                  .peer = 2,
                  .step = 9,
                  .begin = 1'700'000'000'000'000'000,
                  .end = 1'700'000'000'000'000'500},
                 {.kind = SpanKind::kReadData,
                  .begin = 1'600'000'000'000'000'000,
                  .end = 1'600'000'000'000'000'000}};
  return trace;
}

TEST(TraceCodecTest, EveryFieldComesBack) {
  const TaskTrace trace = SomeTrace();
  const absl::StatusOr<TaskTrace> back = FromProto(ToProto(trace));
  ASSERT_OK(back);
  EXPECT_EQ(back->task, trace.task);
  EXPECT_EQ(back->host, trace.host);
  EXPECT_EQ(back->clock.offset, -5);
  EXPECT_EQ(back->clock.error, 7);
  EXPECT_EQ(back->spans, trace.spans);
}

TEST(TraceCodecTest, NoSpansAreATrace) {
  ASSERT_OK(FromProto(ToProto(TaskTrace())));
}

TEST(TraceCodecTest, KindsAreThoseOfTheWire) {
  const std::map<v1::SpanKind, SpanKind> kinds = {
      {v1::SPAN_TOKEN, SpanKind::kToken},
      {v1::SPAN_PULL, SpanKind::kPull},
      {v1::SPAN_READ_DATA, SpanKind::kReadData},
      {v1::SPAN_FORWARD, SpanKind::kForward},
      {v1::SPAN_BACKWARD, SpanKind::kBackward},
      {v1::SPAN_ANNOUNCE, SpanKind::kAnnounce},
      {v1::SPAN_PUSH, SpanKind::kPush},
      {v1::SPAN_AWAIT_VALUES, SpanKind::kAwaitValues},
      {v1::SPAN_RECEIVE, SpanKind::kReceive},
      {v1::SPAN_UPDATE, SpanKind::kUpdate},
      {v1::SPAN_PREPARE, SpanKind::kPrepare},
      {v1::SPAN_COMMIT, SpanKind::kCommit},
      {v1::SPAN_TAKE, SpanKind::kTake},
      {v1::SPAN_ORDER_COMMIT, SpanKind::kOrderCommit},
      {v1::SPAN_CHECKPOINT_COPY, SpanKind::kCheckpointCopy},
      {v1::SPAN_CHECKPOINT_WRITE, SpanKind::kCheckpointWrite},
      {v1::SPAN_DEATH, SpanKind::kDeath}};
  EXPECT_EQ(v1::SpanKind_descriptor()->value_count(), kSpanKinds);
  EXPECT_EQ(kinds.size(), kSpanKinds - 1);  // all but none
  for (const auto& [wire, kind] : kinds) {
    TaskTrace trace = SomeTrace();
    trace.spans[0].kind = kind;
    EXPECT_EQ(ToProto(trace).spans(0).kind(), wire) << wire;
    v1::TaskTrace proto = ToProto(SomeTrace());
    proto.mutable_spans(0)->set_kind(wire);
    const absl::StatusOr<TaskTrace> back = FromProto(proto);
    ASSERT_OK(back);
    EXPECT_EQ(back->spans[0].kind, kind) << wire;
  }
}

TEST(TraceCodecTest, AKindOfANewerProgramIsLeftOut) {
  // 257 is 1 in the byte of a kind.
  for (const int kind : {-1, 0, kSpanKinds, 99, 257}) {
    v1::TaskTrace proto = ToProto(SomeTrace());
    proto.mutable_spans(0)->set_kind(static_cast<v1::SpanKind>(kind));
    const absl::StatusOr<TaskTrace> trace = FromProto(proto);
    ASSERT_OK(trace);
    ASSERT_EQ(trace->spans.size(), 1u) << kind;
    EXPECT_EQ(trace->spans[0].kind, SpanKind::kReadData) << kind;
  }
}

TEST(TraceCodecTest, NumbersThatCannotBeAreNamed) {
  const auto refusal = [](auto change) {
    v1::TaskTrace proto = ToProto(SomeTrace());
    change(proto, *proto.mutable_spans(0));
    return FromProto(proto).status();
  };
  using Proto = v1::TaskTrace;
  using Part = v1::TraceSpan;
  const auto is = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(refusal([](Proto&, Part& s) { s.set_step(-1); }), is("step"));
  EXPECT_THAT(refusal([](Proto&, Part& s) { s.set_part(1u << 31); }),
              is("part"));
  EXPECT_THAT(refusal([](Proto&, Part& s) { s.set_peer(1u << 31); }),
              is("peer"));
  EXPECT_THAT(refusal([](Proto&, Part& s) { s.set_duration(-1); }),
              is("duration"));
  EXPECT_THAT(refusal([](Proto&, Part& s) { s.set_duration(kHuge); }),
              is("duration"));
  EXPECT_THAT(refusal([](Proto&, Part& s) { s.set_begin(kHuge); }),
              is("begin"));
  // Each number alone is in its range.
  EXPECT_THAT(refusal([](Proto& p, Part& s) {
                p.set_base(int64_t{1} << 61);
                s.set_begin(1);
              }),
              is("trace.spans.begin is 2305843009213693953 ns"));
  EXPECT_THAT(refusal([](Proto& p, Part& s) {
                p.set_base(int64_t{1} << 61);
                s.set_begin(0);
                s.set_duration(1);
              }),
              is("trace.spans.end is 2305843009213693953 ns"));
  EXPECT_THAT(refusal([](Proto& p, Part&) { p.set_base(kHuge); }), is("base"));
  EXPECT_THAT(refusal([](Proto& p, Part&) { p.set_offset(-kHuge); }),
              is("trace.offset is"));
  EXPECT_THAT(
      refusal([](Proto& p, Part&) { p.set_task(std::string(257, 'x')); }),
      is("longer than 256"));
  EXPECT_THAT(refusal([](Proto& p, Part&) { p.set_offset_error(-2); }),
              is("offset_error"));
  EXPECT_THAT(
      refusal([](Proto& p, Part&) { p.set_host(std::string(999, 'x')); }),
      is("longer than"));
}

TEST(TraceCodecTest, LimitsComeBackAsTheyWere) {
  for (int set = 0; set < 6; ++set) {
    const RemedyLimits limits{.no_backups = set == 0,
                              .chief_sets_backups = set == 1,
                              .no_servers = set == 2,
                              .no_bfloat16 = set == 3,
                              .no_shared_memory = set == 4,
                              .no_larger_pushes = set == 5};
    const RemedyLimits back = FromProto(ToProto(limits));
    EXPECT_EQ(back.no_backups, set == 0);
    EXPECT_EQ(back.chief_sets_backups, set == 1);
    EXPECT_EQ(back.no_servers, set == 2);
    EXPECT_EQ(back.no_bfloat16, set == 3);
    EXPECT_EQ(back.no_shared_memory, set == 4);
    EXPECT_EQ(back.no_larger_pushes, set == 5);
  }
}

}  // namespace
}  // namespace lockstep
