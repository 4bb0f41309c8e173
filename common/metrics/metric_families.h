#ifndef LOCKSTEP_COMMON_METRICS_METRIC_FAMILIES_H_
#define LOCKSTEP_COMMON_METRICS_METRIC_FAMILIES_H_

#include <string>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"

namespace lockstep {

// Names are [a-z_]+; values are any text.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// MetricFamilies is the metrics of one instant, grouped by name as Prometheus'
// client library has them. Names follow its conventions: base units (seconds,
// bytes), and `_total` for counters.
//
// Threads: not guarded.
class MetricFamilies {
 public:
  // Add one sample. `help`, one line, is taken from the first of a name.
  void Gauge(const std::string& name, const std::string& help, double value,
             const MetricLabels& labels = {});
  void Counter(const std::string& name, const std::string& help, double value,
               const MetricLabels& labels = {});
  // Adds all samples of `more`.
  void Add(MetricFamilies more);
  void Add(std::vector<prometheus::MetricFamily> more);

  // Puts these labels before those of each sample, except labels that the
  // sample has already, because those name another process. Labels without a
  // value are left out.
  void AddLabels(const MetricLabels& labels);

  const std::vector<prometheus::MetricFamily>& families() const {
    return families_;
  }

  // Returns Prometheus' text exposition format, version 0.0.4.
  std::string ToText() const;

 private:
  // The family of that name, which is made if there is none.
  prometheus::MetricFamily& Family(const std::string& name,
                                   const std::string& help,
                                   prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_METRIC_FAMILIES_H_
