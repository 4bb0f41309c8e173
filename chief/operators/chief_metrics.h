#ifndef LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_
#define LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_

#include <vector>

#include "chief/members/membership_table.h"
#include "chief/operators/status_table.h"
#include "common/observe/metrics.h"

namespace lockstep::chief {

// What a chief shows to Prometheus: how the job stands and, by task, who lives
// and, as lockstep_member_*, what the workers reported last. Those figures are
// since the newest incarnation began.
std::vector<Metric> ChiefMetrics(
    const StatusTable::View& job,
    const std::vector<MembershipTable::Member>& members, double learning_rate);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_CHIEF_METRICS_H_
