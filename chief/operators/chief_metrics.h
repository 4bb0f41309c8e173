#ifndef LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_
#define LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_

#include <vector>

#include "chief/members/membership_table.h"
#include "chief/operators/status_table.h"
#include "common/observe/metrics.h"

namespace lockstep::chief {

// Returns the chief's metrics for Prometheus: the state of the job and, by
// task, which members live and, as lockstep_member_*, the newest figures of
// each worker. These count from the start of the worker's newest incarnation.
std::vector<Metric> ChiefMetrics(
    const StatusTable::View& job,
    const std::vector<MembershipTable::Member>& members, double learning_rate);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_
