#ifndef LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_

#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "common/trace/clock_offset.h"
#include "common/trace/span_recorder.h"
#include "lockstep/v1/coordinator.pb.h"
#include "lockstep/v1/identity.pb.h"

namespace lockstep {

// TraceReporter says when the chief wants a member's spans for an operator's
// trace, and makes the report. All members copy their spans at one moment,
// which the chief names by its clock: the round trips of heartbeats tell how
// the clocks differ. Private to common/membership.
//
// Threads: one thread, that of the heartbeats.
// Borrows: the recorder.
class TraceReporter {
 public:
  struct Options {
    TaskId task;
    SpanRecorder* spans = nullptr;  // null: no trace is ever due
  };

  explicit TraceReporter(const Options& options) : options_(options) {}

  // A heartbeat left at `sent`, and its answer came at `received`.
  void OnHeartbeat(const v1::HeartbeatResponse& answer, absl::Time sent,
                   absl::Time received);

  // When TakeReport() must be called, by the own clock; InfiniteFuture(): there
  // is no need. May have passed.
  absl::Time due() const { return due_; }

  // The newest spans, for the trace that the last heartbeat asked for, which is
  // due no longer; must be due. If the chief does not get them, the next
  // heartbeat asks again.
  v1::ReportTraceRequest TakeReport(const v1::Identity& identity);

 private:
  const Options options_;
  ClockOffset clock_offset_;
  v1::TraceWanted wanted_;
  absl::Time due_ = absl::InfiniteFuture();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_
