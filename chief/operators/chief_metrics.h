#ifndef LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_
#define LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "chief/members/membership_table.h"
#include "chief/operators/status_table.h"
#include "common/metrics/metric_families.h"

namespace lockstep::chief {

// A job at one instant.
struct MeasuredJob {
  absl::Time now = {};
  StatusTable::View job = {};
  std::vector<MembershipTable::Member> members = {};
  double learning_rate = 0;  // of the next step
  int64_t train_steps = 0;
  bool saves = true;  // it has a directory of checkpoints
};

// Returns the chief's metrics for Prometheus: the state of the job and, by
// task, the live members and, as lockstep_member_*, the newest figures of each
// worker. These count from the start of the worker's newest incarnation.
MetricFamilies ChiefMetrics(const MeasuredJob& measured);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_
