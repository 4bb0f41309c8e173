#ifndef LOCKSTEP_CHIEF_TRACES_TRACE_DEMAND_H_
#define LOCKSTEP_CHIEF_TRACES_TRACE_DEMAND_H_

#include "chief/traces/trace_table.h"
#include "common/base/clock.h"
#include "common/cluster/task_id.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep::chief {

// Adds to the answer to a heartbeat of `member` what traces need of it: the
// demand for its spans, if there is one, and the chief's time.
void AddTraceDemand(TraceTable& table, const TaskId& member, const Clock& clock,
                    v1::HeartbeatResponse& response);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TRACES_TRACE_DEMAND_H_
