#ifndef LOCKSTEP_COMMON_METRICS_METRIC_FAMILIES_H_
#define LOCKSTEP_COMMON_METRICS_METRIC_FAMILIES_H_

#include <string>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"

namespace lockstep {

// Names are [a-z_]+; values are any text.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// MetricFamilies holds the metrics of one instant, grouped by name as in
// Prometheus' client library. Names follow its conventions: base units
// (seconds, bytes), and `_total` for counters.
//
// Threads: not thread-safe.
class MetricFamilies {
 public:
  // Adds one sample. All samples of a name share the help of the first one,
  // which must be one line.
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
  // Returns the family of that name, and makes it if there is none.
  prometheus::MetricFamily& Family(const std::string& name,
                                   const std::string& help,
                                   prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_METRIC_FAMILIES_H_
