#ifndef LOCKSTEP_COMMON_OBSERVE_PROGRESS_METRICS_H_
#define LOCKSTEP_COMMON_OBSERVE_PROGRESS_METRICS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/metrics/metric_families.h"
#include "common/plan/progress.h"

namespace lockstep {

// A worker, by its labels, and its progress since its incarnation began.
struct WorkerProgress {
  MetricLabels labels;
  Progress progress;
};

// Prefixes of names: a worker's own report, and the chief's report on all
// workers. They differ, so that no sum counts a worker twice.
constexpr char kOwnProgress[] = "lockstep_worker_";
constexpr char kReportedProgress[] = "lockstep_member_";

// Returns the progress of workers as metrics, with kReportedProgress only what
// heartbeats report.
MetricFamilies ProgressMetrics(absl::string_view prefix,
                               const std::vector<WorkerProgress>& workers);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_PROGRESS_METRICS_H_
