#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_CODEC_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_CODEC_H_

#include "deploy/cli/status/job_status.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep::cli {

// Accepts any message: a state without a name becomes kUnknown, durations
// beyond their range become infinite.
JobStatus DecodeStatus(const v1::GetStatusResponse& response);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_CODEC_H_
