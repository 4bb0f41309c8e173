#include "chief/traces/trace_demand.h"

#include <optional>

#include "absl/time/time.h"

namespace lockstep::chief {

void AddTraceDemand(TraceTable& table, const TaskId& member, const Clock& clock,
                    v1::HeartbeatResponse& response) {
  const std::optional<TraceTable::Wanted> wanted =
      table.WantedFrom(member.ToString(), clock.Now());
  if (wanted.has_value()) {
    v1::TraceWanted& trace = *response.mutable_trace();
    trace.set_id(wanted->id);
    trace.set_at(absl::ToUnixNanos(wanted->at));
    trace.set_max_spans(wanted->max_spans);
  }
  // Read last, since members compare it with their own clock.
  response.set_chief_time(absl::ToUnixNanos(clock.Now()));
}

}  // namespace lockstep::chief
