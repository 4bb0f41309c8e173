#ifndef LOCKSTEP_COMMON_OBSERVE_PROGRESS_METRICS_H_
#define LOCKSTEP_COMMON_OBSERVE_PROGRESS_METRICS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/observe/metrics.h"
#include "common/plan/progress.h"

namespace lockstep {

// A worker, by its labels, and what it has done since its incarnation began.
struct WorkerProgress {
  std::vector<std::pair<std::string, std::string>> labels;
  Progress progress;
};

// Prefixes of names: what a worker says of itself, and what the chief has heard
// of all workers. They differ, so that no sum counts a worker twice.
constexpr char kOwnProgress[] = "lockstep_worker_";
constexpr char kReportedProgress[] = "lockstep_member_";

// What is known of workers, for Prometheus: all of them under one name before
// the next name begins.
std::vector<Metric> ProgressMetrics(absl::string_view prefix,
                                    const std::vector<WorkerProgress>& workers);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_PROGRESS_METRICS_H_
