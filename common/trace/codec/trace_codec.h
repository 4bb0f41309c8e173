#ifndef LOCKSTEP_COMMON_TRACE_CODEC_TRACE_CODEC_H_
#define LOCKSTEP_COMMON_TRACE_CODEC_TRACE_CODEC_H_

#include "absl/status/statusor.h"
#include "common/trace/remedy_limits.h"
#include "common/trace/task_trace.h"
#include "lockstep/v1/trace.pb.h"

namespace lockstep {

v1::TaskTrace ToProto(const TaskTrace& trace);
v1::RemedyLimits ToProto(const RemedyLimits& limits);

// Unknown kinds of spans are left out, because a newer program may have sent
// them.
//
//   kInvalidArgument  a time, a step or a number out of range; names the field
absl::StatusOr<TaskTrace> FromProto(const v1::TaskTrace& proto);

RemedyLimits FromProto(const v1::RemedyLimits& proto);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_CODEC_TRACE_CODEC_H_
