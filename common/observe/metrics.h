#ifndef LOCKSTEP_COMMON_OBSERVE_METRICS_H_
#define LOCKSTEP_COMMON_OBSERVE_METRICS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

// One figure of a process, as Prometheus counts them. Names follow its
// conventions: base units (seconds, bytes), and `_total` for counters.
struct Metric {
  enum class Kind { kGauge, kCounter };

  std::string name;  // [a-z_]+
  std::string help;  // one line
  Kind kind = Kind::kGauge;
  double value = 0;
  // Names are [a-z_]+; values are any text.
  std::vector<std::pair<std::string, std::string>> labels = {};
};

// Puts these labels before those that each of `metrics` has, except for one of
// the same name: what a metric says of another process stays so. Labels without
// a value are left out.
void AddLabels(const std::vector<std::pair<std::string, std::string>>& labels,
               std::vector<Metric>& metrics);

// Writes metrics in Prometheus' text exposition format, version 0.0.4. Metrics
// of one name, which differ by their labels, stand together in `metrics`.
std::string FormatMetrics(absl::Span<const Metric> metrics);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_METRICS_H_
