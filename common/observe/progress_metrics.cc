#include "common/observe/progress_metrics.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep {
namespace {

struct Figure {
  const char* name;  // name without its prefix
  const char* help;
  Metric::Kind kind;
  double (*of)(const Progress&);
};

constexpr Metric::Kind kGauge = Metric::Kind::kGauge;
constexpr Metric::Kind kCounter = Metric::Kind::kCounter;

constexpr Figure kFigures[] = {
    {"local_step", "Global step of the pass at hand.", kGauge,
     [](const Progress& p) { return static_cast<double>(p.local_step); }},
    {"passes_total", "Passes begun.", kCounter,
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
     [](const Progress& p) { return static_cast<double>(p.non_finite); }},
    {"loss", "Mean loss of the last pass.", kGauge,
     [](const Progress& p) { return p.loss; }},
};

}  // namespace

std::vector<Metric> ProgressMetrics(
    absl::string_view prefix, const std::vector<WorkerProgress>& workers) {
  std::vector<Metric> metrics;
  for (const Figure& figure : kFigures) {
    for (const WorkerProgress& worker : workers) {
      metrics.push_back({absl::StrCat(prefix, figure.name), figure.help,
                         figure.kind, figure.of(worker.progress),
                         worker.labels});
    }
  }
  return metrics;
}

}  // namespace lockstep
