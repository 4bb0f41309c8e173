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

std::vector<Metric> PushMetrics::Metrics() const {
  std::vector<Metric> metrics;
  const auto add = [&](const char* outcome, int64_t count) {
    metrics.push_back({"lockstep_server_gradients_total",
                       "Gradients of parts that were pushed, by outcome.",
                       Metric::Kind::kCounter,
                       static_cast<double>(count),
                       {{"outcome", outcome}}});
  };
  add("accepted", accepted_);
  add("stale", stale_);
  add("duplicate", duplicate_);
  add("superseded", superseded_);
  return metrics;
}

}  // namespace lockstep::server
