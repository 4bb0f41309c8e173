#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_JOB_TRACE_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_JOB_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/trace/remedy_limits.h"
#include "common/trace/task_trace.h"

namespace lockstep::cli {

// The spans of all tasks of a job, from about the same time.
struct JobTrace {
  std::vector<TaskTrace> tasks;
  std::vector<std::string> silent;  // tasks that handed nothing in
  RemedyLimits limits;
};

// Moves all spans into the chief's time. Afterwards the offsets of the clocks
// are 0; their errors stay.
void AlignClocks(JobTrace& trace);

// Drops the spans from before the last time that the job went back to an
// earlier step: the steps since then have the same numbers again. The clocks
// must be aligned.
void DropLostSteps(JobTrace& trace);

// Returns the largest error of a clock, ns; -1 if one of them is not known.
int64_t ClockError(const JobTrace& trace);

// The newest `count` steps that ps 0 has committed: [first, end); the step s is
// the one that begins with s committed steps. Empty if there is none.
struct StepRange {
  int64_t first = 0;
  int64_t end = 0;
  bool empty() const { return first >= end; }
};
StepRange NewestSteps(const JobTrace& trace, int64_t count);

// Drops the spans of steps outside the range. Drops spans without a step if
// they lie before its begin or after its end.
void KeepSteps(const StepRange& range, JobTrace& trace);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_JOB_TRACE_H_
