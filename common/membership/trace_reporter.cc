#include "common/membership/trace_reporter.h"

#include "common/process/process.h"
#include "common/trace/codec/trace_codec.h"

namespace lockstep {

void TraceReporter::OnHeartbeat(const v1::HeartbeatResponse& answer,
                                absl::Time sent, absl::Time received) {
  // A chief of an older version does not tell its time.
  if (answer.chief_time() > 0) {
    clock_offset_.Note(absl::ToUnixNanos(sent), absl::ToUnixNanos(received),
                       answer.chief_time());
  }
  due_ = absl::InfiniteFuture();
  if (!answer.has_trace() || options_.spans == nullptr) return;
  // The chief names a time of its own clock; all tasks then report the same
  // period.
  wanted_ = answer.trace();
  due_ = absl::FromUnixNanos(wanted_.at()) -
         absl::Nanoseconds(clock_offset_.Get().offset);
}

v1::ReportTraceRequest TraceReporter::TakeReport(const v1::Identity& identity) {
  due_ = absl::InfiniteFuture();
  TaskTrace trace{.task = options_.task.ToString(), .host = HostName()};
  trace.clock = clock_offset_.Get();
  trace.spans = options_.spans->Newest(wanted_.max_spans());
  v1::ReportTraceRequest request;
  *request.mutable_identity() = identity;
  request.set_id(wanted_.id());
  *request.mutable_trace() = ToProto(trace);
  return request;
}

}  // namespace lockstep
