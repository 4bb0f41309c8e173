#include "common/progress_metrics.h"

#include "absl/time/time.h"

namespace lockstep {
namespace {

struct Figure {
  const char* name;
  const char* help;
  Metric::Kind kind;
  double (*of)(const Progress&);
};

constexpr Metric::Kind kGauge = Metric::Kind::kGauge;
constexpr Metric::Kind kCounter = Metric::Kind::kCounter;

constexpr Figure kFigures[] = {
    {"lockstep_worker_local_step", "Global step of the pass at hand.", kGauge,
     [](const Progress& p) { return static_cast<double>(p.local_step); }},
    {"lockstep_worker_passes_total", "Passes begun.", kCounter,
     [](const Progress& p) { return static_cast<double>(p.passes); }},
    {"lockstep_worker_accepted_total", "Passes whose gradient counted.",
     kCounter,
     [](const Progress& p) { return static_cast<double>(p.accepted); }},
    {"lockstep_worker_stale_total",
     "Passes that came too late or were not needed.", kCounter,
     [](const Progress& p) { return static_cast<double>(p.stale); }},
    {"lockstep_worker_examples_total", "Examples computed on.", kCounter,
     [](const Progress& p) { return static_cast<double>(p.examples); }},
    {"lockstep_worker_waiting_seconds_total",
     "Time spent waiting for servers, tokens and data.", kCounter,
     [](const Progress& p) { return absl::ToDoubleSeconds(p.waiting); }},
    {"lockstep_worker_non_finite_total",
     "Elements of gradients that were NaN or infinite, on this worker.",
     kCounter,
     [](const Progress& p) { return static_cast<double>(p.non_finite); }},
    {"lockstep_worker_loss", "Mean loss of the last pass.", kGauge,
     [](const Progress& p) { return p.loss; }},
};

}  // namespace

std::vector<Metric> ProgressMetrics(
    const std::vector<WorkerProgress>& workers) {
  std::vector<Metric> metrics;
  for (const Figure& figure : kFigures) {
    for (const WorkerProgress& worker : workers) {
      metrics.push_back({figure.name, figure.help, figure.kind,
                         figure.of(worker.progress), worker.labels});
    }
  }
  return metrics;
}

}  // namespace lockstep
