#ifndef LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_

#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "common/trace/clock_offset.h"
#include "common/trace/span_recorder.h"
#include "lockstep/v1/coordinator.pb.h"
#include "lockstep/v1/identity.pb.h"

namespace lockstep {

// TraceReporter decides when to copy a member's spans for an operator's trace,
// and makes the report. All members copy their spans at one moment, which the
// chief gives by its clock; the round trips of heartbeats show how far the
// clocks differ. Private to common/membership.
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

  // Handles the answer to a heartbeat that was sent at `sent` and answered at
  // `received`.
  void OnHeartbeat(const v1::HeartbeatResponse& answer, absl::Time sent,
                   absl::Time received);

  // The time at which TakeReport() must be called, by this process's clock;
  // InfiniteFuture() if no trace is wanted. May be in the past.
  absl::Time due() const { return due_; }

  // Returns the newest spans, for the trace that the last heartbeat requested;
  // must be due. The trace is not due afterwards; if the chief does not receive
  // it, it requests it again.
  v1::ReportTraceRequest TakeReport(const v1::Identity& identity);

 private:
  const Options options_;
  ClockOffset clock_offset_;
  v1::TraceWanted wanted_;
  absl::Time due_ = absl::InfiniteFuture();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_
