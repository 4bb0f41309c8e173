#include "server/rpc/push_metrics.h"

namespace lockstep::server {

void PushMetrics::Count(const PushAnswer& answer) {
  for (PushOutcome outcome : answer.outcomes) {
    switch (outcome) {
      case PushOutcome::kAccepted:
        ++accepted_;
        break;
      case PushOutcome::kStale:
        ++stale_;
        break;
      case PushOutcome::kDuplicate:
        ++duplicate_;
        break;
      case PushOutcome::kSuperseded:
        ++superseded_;
        break;
    }
  }
}

MetricFamilies PushMetrics::Metrics() const {
  MetricFamilies metrics;
  const auto add = [&](const char* outcome, int64_t count) {
    metrics.Counter("lockstep_server_gradients_total",
                    "Gradients of parts that were pushed, by outcome.",
                    static_cast<double>(count), {{"outcome", outcome}});
  };
  add("accepted", accepted_);
  add("stale", stale_);
  add("duplicate", duplicate_);
  add("superseded", superseded_);
  return metrics;
}

}  // namespace lockstep::server
