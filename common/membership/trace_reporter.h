#ifndef LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/task_id.h"
#include "common/membership/coordinator_calls.h"
#include "common/trace/clock_offset.h"
#include "common/trace/span_recorder.h"
#include "lockstep/v1/coordinator.pb.h"
#include "lockstep/v1/identity.pb.h"

namespace lockstep {

// TraceReporter hands a member's spans to the chief when an operator wants a
// trace. All members copy their spans at one moment, which the chief names by
// its clock: the round trips of heartbeats tell how the clocks differ. Private
// to common/membership.
//
// Threads: one thread, that of the heartbeats.
// Borrows: the recorder, the clock and the calls.
class TraceReporter {
 public:
  struct Options {
    TaskId task;
    SpanRecorder* spans = nullptr;  // null: no trace is ever due
    const Clock* clock = &Clock::Real();
  };

  TraceReporter(const Options& options, CoordinatorCalls& calls)
      : options_(options), calls_(calls) {}

  // A heartbeat left at `sent`, and its answer came at `received`.
  void OnHeartbeat(const v1::HeartbeatResponse& answer, absl::Time sent,
                   absl::Time received);

  // When Report() must be called, by the own clock; InfiniteFuture(): there is
  // no need. May have passed.
  absl::Time due() const { return due_; }

  // Hands the spans in. If that fails, the next heartbeat asks again.
  void Report(const v1::Identity& identity);

 private:
  const Options options_;
  CoordinatorCalls& calls_;
  ClockOffset clock_offset_;
  v1::TraceWanted wanted_;
  absl::Time due_ = absl::InfiniteFuture();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_TRACE_REPORTER_H_
