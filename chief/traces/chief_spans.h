#ifndef LOCKSTEP_CHIEF_TRACES_CHIEF_SPANS_H_
#define LOCKSTEP_CHIEF_TRACES_CHIEF_SPANS_H_

#include <cstdint>
#include <string>

#include "common/trace/span_recorder.h"

namespace lockstep::chief {

// These functions record spans of the chief that end now; `began` is a time of
// the recorder's clock. `step` is that of Span.

// The answer of a server to a take; `attempt` is the answer's.
void RecordTake(SpanRecorder& spans, int64_t began, int server, int64_t step,
                int64_t attempt);

// The answer to a commit.
void RecordCommit(SpanRecorder& spans, int64_t began, int64_t step,
                  int64_t attempt);

// `task` has died, e.g. "worker 1". Deaths of other tasks than workers show as
// waits, and are not recorded.
void RecordDeath(SpanRecorder& spans, const std::string& task, int64_t step);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TRACES_CHIEF_SPANS_H_
