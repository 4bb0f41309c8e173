#include "common/trace/codec/trace_codec.h"

#include <cstdint>
#include <limits>
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
  const auto* kinds = v1::SpanKind_descriptor();
  EXPECT_EQ(kinds->value_count(), kSpanKinds);
  for (int kind = 1; kind < kSpanKinds; ++kind) {
    EXPECT_NE(kinds->FindValueByNumber(kind), nullptr) << kind;
  }
}

TEST(TraceCodecTest, AKindOfANewerProgramIsLeftOut) {
  v1::TaskTrace proto = ToProto(SomeTrace());
  proto.mutable_spans(0)->set_kind(static_cast<v1::SpanKind>(99));
  const absl::StatusOr<TaskTrace> trace = FromProto(proto);
  ASSERT_OK(trace);
  EXPECT_EQ(trace->spans.size(), 1u);
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
  EXPECT_THAT(refusal([](Proto& p, Part&) { p.set_base(kHuge); }), is("base"));
  EXPECT_THAT(refusal([](Proto& p, Part&) { p.set_offset(-kHuge); }),
              is("offset"));
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
