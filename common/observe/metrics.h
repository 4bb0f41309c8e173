#ifndef LOCKSTEP_COMMON_OBSERVE_METRICS_H_
#define LOCKSTEP_COMMON_OBSERVE_METRICS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

// One sample of a Prometheus metric. Names follow its conventions: base units
// (seconds, bytes), and `_total` for counters.
struct Metric {
  enum class Kind { kGauge, kCounter };

  std::string name;  // [a-z_]+
  std::string help;  // one line
  Kind kind = Kind::kGauge;
  double value = 0;
  // Names are [a-z_]+; values are any text.
  std::vector<std::pair<std::string, std::string>> labels = {};
};

// Puts these labels before those of each of `metrics`, except labels that the
// metric has already, because those name another process. Labels without a
// value are left out.
void AddLabels(const std::vector<std::pair<std::string, std::string>>& labels,
               std::vector<Metric>& metrics);

// Writes metrics in Prometheus' text exposition format, version 0.0.4. Metrics
// of one name, which differ in their labels, must be adjacent in `metrics`.
std::string FormatMetrics(absl::Span<const Metric> metrics);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_METRICS_H_
