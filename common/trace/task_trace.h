#ifndef LOCKSTEP_COMMON_TRACE_TASK_TRACE_H_
#define LOCKSTEP_COMMON_TRACE_TASK_TRACE_H_

#include <string>
#include <vector>

#include "common/trace/clock_offset.h"
#include "common/trace/span.h"

namespace lockstep {

// The newest spans of one task of a job, in the time of its own clock.
struct TaskTrace {
  std::string task{};  // e.g. "worker 1"
  std::string host{};
  ClockOffset::Estimate clock{};  // of the chief against the task
  std::vector<Span> spans{};
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_TASK_TRACE_H_
