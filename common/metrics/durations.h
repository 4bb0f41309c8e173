#ifndef LOCKSTEP_COMMON_METRICS_DURATIONS_H_
#define LOCKSTEP_COMMON_METRICS_DURATIONS_H_

#include <chrono>
#include <string>

#include "absl/strings/string_view.h"
#include "common/metrics/metric_families.h"
#include "prometheus/histogram.h"

namespace lockstep {

// The durations that this process measures, as histograms of Prometheus'
// client library, from 10 microseconds to a minute:
//
//   lockstep_step_seconds             of the chief: from one commit to the next
//   lockstep_worker_phase_seconds     of a worker, by phase: its share of a
//   pass lockstep_rpc_client_seconds       by method: from the call to its
//   answer lockstep_rpc_server_seconds       by method: from the arrival of a
//   call to
//                                     its answer
//
// Threads: safe to share, all of it.

prometheus::Histogram& StepSeconds();

// `phase` is a word of the source: the histograms of all stay in memory.
prometheus::Histogram& WorkerPhaseSeconds(absl::string_view phase);

enum class RpcSide { kClient, kServer };

// RpcTimer measures one call. `method` is a full name of this tree's protos,
// "/lockstep.v1.ParameterService/Push", never text from a wire: the histograms
// of all stay in memory.
class RpcTimer {
 public:
  RpcTimer(RpcSide side, absl::string_view method);

  // The call is answered.
  void Done() const;

 private:
  prometheus::Histogram* histogram_;
  std::chrono::steady_clock::time_point began_;
};

// All of them, as they are now; those that were never used are left out.
MetricFamilies DurationMetrics();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_DURATIONS_H_
