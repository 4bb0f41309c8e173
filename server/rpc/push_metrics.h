#ifndef LOCKSTEP_SERVER_RPC_PUSH_METRICS_H_
#define LOCKSTEP_SERVER_RPC_PUSH_METRICS_H_

#include <atomic>
#include <cstdint>

#include "common/metrics/metric_families.h"
#include "server/step/engine.h"

namespace lockstep::server {

// PushMetrics counts the outcomes of the gradients that were pushed to a
// server, part by part.
//
// Threads: safe to share.
class PushMetrics {
 public:
  // Counts the outcomes in the answer to a push.
  void Count(const PushAnswer& answer);

  // One metric, labelled by outcome.
  MetricFamilies Metrics() const;

 private:
  std::atomic<int64_t> accepted_ = 0;
  std::atomic<int64_t> stale_ = 0;
  std::atomic<int64_t> duplicate_ = 0;
  std::atomic<int64_t> superseded_ = 0;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_PUSH_METRICS_H_
