#include "common/metrics/durations.h"

#include <functional>
#include <map>

#include "common/base/mutex.h"
#include "prometheus/registry.h"

namespace lockstep {
namespace {

const prometheus::Histogram::BucketBoundaries& Buckets() {
  // Never destroyed, as all objects of this file: threads may still measure
  // while the process ends.
  static const auto* const buckets =
      new prometheus::Histogram::BucketBoundaries{
          1e-5,   2.5e-5, 5e-5, 1e-4,  2.5e-4, 5e-4, 1e-3,
          2.5e-3, 5e-3,   0.01, 0.025, 0.05,   0.1,  0.25,
          0.5,    1,      2.5,  5,     10,     30,   60};
  return *buckets;
}

prometheus::Registry& Registry() {
  static auto* const registry = new prometheus::Registry;
  return *registry;
}

// The histograms of one name, by the value of their label. The library's own
// search makes a map of labels for each; this one does not.
class ByLabel {
 public:
  ByLabel(const char* name, const char* help, const char* label)
      : label_(label),
        family_(prometheus::BuildHistogram().Name(name).Help(help).Register(
            Registry())) {}

  prometheus::Histogram& Get(absl::string_view value)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    const auto found = histograms_.find(value);
    if (found != histograms_.end()) return *found->second;
    // The family owns the histogram, whose address stays valid.
    prometheus::Histogram& made =
        family_.Add({{label_, std::string(value)}}, Buckets());
    histograms_.emplace(value, &made);
    return made;
  }

 private:
  const char* const label_;
  prometheus::Family<prometheus::Histogram>& family_;
  Mutex mutex_;
  std::map<std::string, prometheus::Histogram*, std::less<>> histograms_
      ABSL_GUARDED_BY(mutex_);
};

ByLabel& RpcSeconds(RpcSide side) {
  static auto* const client =
      new ByLabel("lockstep_rpc_client_seconds",
                  "Time from a call to its answer, at the caller.", "method");
  static auto* const server = new ByLabel(
      "lockstep_rpc_server_seconds",
      "Time from the arrival of a call to its answer; a call may wait for a "
      "step.",
      "method");
  return side == RpcSide::kClient ? *client : *server;
}

}  // namespace

prometheus::Histogram& StepSeconds() {
  static prometheus::Histogram& histogram =
      prometheus::BuildHistogram()
          .Name("lockstep_step_seconds")
          .Help("Time from one committed step to the next.")
          .Register(Registry())
          .Add({}, Buckets());
  return histogram;
}

prometheus::Histogram& WorkerPhaseSeconds(absl::string_view phase) {
  static auto* const phases =
      new ByLabel("lockstep_worker_phase_seconds",
                  "Time that a pass spent in one phase.", "phase");
  return phases->Get(phase);
}

RpcTimer::RpcTimer(RpcSide side, absl::string_view method)
    : histogram_(&RpcSeconds(side).Get(method)),
      began_(std::chrono::steady_clock::now()) {}

void RpcTimer::Done() const {
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - began_;
  histogram_->Observe(took.count());
}

MetricFamilies DurationMetrics() {
  MetricFamilies metrics;
  metrics.Add(Registry().Collect());
  return metrics;
}

}  // namespace lockstep
