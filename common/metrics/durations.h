#ifndef LOCKSTEP_COMMON_METRICS_DURATIONS_H_
#define LOCKSTEP_COMMON_METRICS_DURATIONS_H_

#include <chrono>
#include <string>

#include "absl/strings/string_view.h"
#include "common/metrics/metric_families.h"
#include "prometheus/histogram.h"

namespace lockstep {

// The durations that this process measures, in seconds, as histograms of
// Prometheus' client library, from 10 microseconds to a minute:
//
//   lockstep_step_seconds          chief: from one commit to the next
//   lockstep_worker_phase_seconds  worker, by phase: the time of a pass in it
//   lockstep_rpc_client_seconds    by method: from a call to its answer
//   lockstep_rpc_server_seconds    by method: from a call's arrival to its
//   answer
//
// Threads: all functions and classes are safe to share.

prometheus::Histogram& StepSeconds();

// `phase` must be a constant of the source, because its histogram stays in
// memory for ever.
prometheus::Histogram& WorkerPhaseSeconds(absl::string_view phase);

enum class RpcSide { kClient, kServer };

// RpcTimer measures one call, from its constructor to Done(). `method` must be
// the full name of a method of this tree's protos, such as
// "/lockstep.v1.ParameterService/Push", and never text from a peer, because its
// histogram stays in memory for ever.
class RpcTimer {
 public:
  RpcTimer(RpcSide side, absl::string_view method);

  // Records the call's duration. Must be called when the call has its answer.
  void Done() const;

 private:
  prometheus::Histogram* histogram_;
  std::chrono::steady_clock::time_point began_;
};

// Returns all histograms with their present values, without those that were
// never used.
MetricFamilies DurationMetrics();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_DURATIONS_H_
