#include "common/trace/codec/trace_codec.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

constexpr uint32_t kMaxNumber = std::numeric_limits<int32_t>::max();
// The times of a trace, with its offset, stay far from the ends of int64.
constexpr int64_t kMaxTime = int64_t{1} << 61;
constexpr size_t kMaxName = 256;

absl::Status CheckNumber(const char* field, uint32_t value) {
  if (value <= kMaxNumber) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "trace.spans.", field, " is ", value, "; at most ", kMaxNumber));
}

absl::Status CheckTime(const char* field, int64_t value, int64_t least) {
  if (value >= least && value <= kMaxTime) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("trace.", field, " is ", value,
                                                 " ns; it must be in [", least,
                                                 ", ", kMaxTime, "]"));
}

absl::StatusOr<Span> SpanFrom(const v1::TraceSpan& proto, int64_t base) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNumber("part", proto.part()));
  LOCKSTEP_RETURN_IF_ERROR(CheckNumber("peer", proto.peer()));
  LOCKSTEP_RETURN_IF_ERROR(CheckTime("spans.begin", proto.begin(), -kMaxTime));
  LOCKSTEP_RETURN_IF_ERROR(CheckTime("spans.duration", proto.duration(), 0));
  if (proto.step() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trace.spans.step is ", proto.step(), "; it must be 0 or more"));
  }
  Span span;
  span.kind = static_cast<SpanKind>(proto.kind());
  span.flags = static_cast<uint8_t>(proto.flags());
  span.attempt = SpanAttempt(proto.attempt());
  // Sent plus 1, so that "none" is 0, the default of the field, and takes no
  // bytes.
  span.part = static_cast<int32_t>(proto.part()) - 1;
  span.peer = static_cast<int32_t>(proto.peer()) - 1;
  span.step = proto.step() - 1;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckTime("spans.begin", base + proto.begin(), -kMaxTime));
  span.begin = base + proto.begin();
  LOCKSTEP_RETURN_IF_ERROR(
      CheckTime("spans.end", span.begin + proto.duration(), -kMaxTime));
  span.end = span.begin + proto.duration();
  return span;
}

}  // namespace

v1::TaskTrace ToProto(const TaskTrace& trace) {
  v1::TaskTrace proto;
  proto.set_task(trace.task);
  proto.set_host(trace.host);
  proto.set_offset(trace.clock.offset);
  proto.set_offset_error(trace.clock.error);
  // Times are sent relative to the earliest: small numbers are short varints.
  int64_t base = trace.spans.empty() ? 0 : trace.spans.front().begin;
  for (const Span& span : trace.spans) base = std::min(base, span.begin);
  proto.set_base(base);
  for (const Span& span : trace.spans) {
    v1::TraceSpan& out = *proto.add_spans();
    out.set_kind(static_cast<v1::SpanKind>(span.kind));
    out.set_step(span.step + 1);
    out.set_attempt(span.attempt);
    out.set_part(static_cast<uint32_t>(span.part + 1));
    out.set_peer(static_cast<uint32_t>(span.peer + 1));
    out.set_flags(span.flags);
    out.set_begin(span.begin - base);
    out.set_duration(span.end - span.begin);
  }
  return proto;
}

absl::StatusOr<TaskTrace> FromProto(const v1::TaskTrace& proto) {
  if (proto.task().size() > kMaxName || proto.host().size() > kMaxName) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace.task or trace.host is longer than ", kMaxName,
                     " bytes: ", Excerpt(proto.task())));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckTime("base", proto.base(), -kMaxTime));
  LOCKSTEP_RETURN_IF_ERROR(CheckTime("offset", proto.offset(), -kMaxTime));
  LOCKSTEP_RETURN_IF_ERROR(CheckTime("offset_error", proto.offset_error(), -1));
  TaskTrace trace;
  trace.task = proto.task();
  trace.host = proto.host();
  trace.clock = {proto.offset(), proto.offset_error()};
  trace.spans.reserve(static_cast<size_t>(proto.spans_size()));
  for (const v1::TraceSpan& each : proto.spans()) {
    if (each.kind() <= 0 || each.kind() >= kSpanKinds) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(Span span, SpanFrom(each, proto.base()));
    trace.spans.push_back(span);
  }
  return trace;
}

v1::RemedyLimits ToProto(const RemedyLimits& limits) {
  v1::RemedyLimits proto;
  proto.set_no_backups(limits.no_backups);
  proto.set_chief_sets_backups(limits.chief_sets_backups);
  proto.set_no_servers(limits.no_servers);
  proto.set_no_bfloat16(limits.no_bfloat16);
  proto.set_no_shared_memory(limits.no_shared_memory);
  proto.set_no_larger_pushes(limits.no_larger_pushes);
  return proto;
}

RemedyLimits FromProto(const v1::RemedyLimits& proto) {
  return {.no_backups = proto.no_backups(),
          .chief_sets_backups = proto.chief_sets_backups(),
          .no_servers = proto.no_servers(),
          .no_bfloat16 = proto.no_bfloat16(),
          .no_shared_memory = proto.no_shared_memory(),
          .no_larger_pushes = proto.no_larger_pushes()};
}

}  // namespace lockstep
