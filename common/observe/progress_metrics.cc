#include "common/observe/progress_metrics.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep {
namespace {

struct Figure {
  const char* name;  // name without its prefix
  const char* help;
  bool counts;
  double (*of)(const Progress&);
  bool reported = true;  // in heartbeats, so that the chief knows it
};

constexpr bool kGauge = false;
constexpr bool kCounter = true;

double LossOf(const Progress& progress) { return progress.loss; }

constexpr Figure kFigures[] = {
    {"local_step", "Global step of the pass at hand.", kGauge,
     [](const Progress& p) { return static_cast<double>(p.local_step); }},
    {"passes_total", "Passes computed.", kCounter,
     [](const Progress& p) { return static_cast<double>(p.passes); }},
    {"accepted_total", "Passes whose gradient counted.", kCounter,
     [](const Progress& p) { return static_cast<double>(p.accepted); }},
    {"stale_total", "Passes that came too late or were not needed.", kCounter,
     [](const Progress& p) { return static_cast<double>(p.stale); }},
    {"examples_total", "Examples computed on.", kCounter,
     [](const Progress& p) { return static_cast<double>(p.examples); }},
    {"waiting_seconds_total",
     "Time spent waiting for servers, tokens and data.", kCounter,
     [](const Progress& p) { return absl::ToDoubleSeconds(p.waiting); }},
    {"non_finite_total",
     "Elements of gradients that were NaN or infinite, on this worker.",
     kCounter,
     [](const Progress& p) { return static_cast<double>(p.non_finite); },
     /*reported=*/false},
    {"loss",
     "Mean loss of the last pass; absent unless it is recent and finite.",
     kGauge, &LossOf},
};

}  // namespace

MetricFamilies ProgressMetrics(absl::string_view prefix,
                               const std::vector<WorkerProgress>& workers) {
  MetricFamilies metrics;
  for (const Figure& figure : kFigures) {
    if (prefix == kReportedProgress && !figure.reported) continue;
    const std::string name = absl::StrCat(prefix, figure.name);
    for (const WorkerProgress& worker : workers) {
      // A mean over workers would be wrong with the 0 of one without a pass,
      // and NaN with one whose last pass is old.
      if (figure.of == &LossOf && !worker.progress.HasLoss()) continue;
      const double value = figure.of(worker.progress);
      if (figure.counts) {
        metrics.Counter(name, figure.help, value, worker.labels);
      } else {
        metrics.Gauge(name, figure.help, value, worker.labels);
      }
    }
  }
  return metrics;
}

}  // namespace lockstep
