#ifndef LOCKSTEP_COMMON_TRACE_CODEC_TRACE_CODEC_H_
#define LOCKSTEP_COMMON_TRACE_CODEC_TRACE_CODEC_H_

#include "absl/status/statusor.h"
#include "common/trace/task_trace.h"
#include "lockstep/v1/trace.pb.h"

namespace lockstep {

v1::TaskTrace ToProto(const TaskTrace& trace);

//   kInvalidArgument  a time, a step or a number that cannot be; an unknown
//                     kind of span is left out, as it may be a newer program's
absl::StatusOr<TaskTrace> FromProto(const v1::TaskTrace& proto);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_CODEC_TRACE_CODEC_H_
