#ifndef LOCKSTEP_COMMON_STATUS_STATUS_CODEC_H_
#define LOCKSTEP_COMMON_STATUS_STATUS_CODEC_H_

#include "common/status/job_status.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep {

// Converts an answer. Accepts any message: a state without a name becomes
// kUnknown, durations beyond their range become infinite.
JobStatus DecodeStatus(const v1::GetStatusResponse& response);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STATUS_STATUS_CODEC_H_
