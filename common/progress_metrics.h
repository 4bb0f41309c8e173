#ifndef LOCKSTEP_COMMON_PROGRESS_METRICS_H_
#define LOCKSTEP_COMMON_PROGRESS_METRICS_H_

#include <string>
#include <utility>
#include <vector>

#include "common/metrics.h"
#include "common/progress.h"

namespace lockstep {

// A worker, by its labels, and what it has done since its incarnation began.
struct WorkerProgress {
  std::vector<std::pair<std::string, std::string>> labels;
  Progress progress;
};

// What is known of workers, for Prometheus: all of them under one name before
// the next name begins.
std::vector<Metric> ProgressMetrics(const std::vector<WorkerProgress>& workers);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROGRESS_METRICS_H_
