#ifndef LOCKSTEP_CHIEF_SERVERS_SHARD_SETUP_CODEC_H_
#define LOCKSTEP_CHIEF_SERVERS_SHARD_SETUP_CODEC_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "chief/servers/shard_calls.h"
#include "common/job/job_config.h"
#include "common/plan/plan.h"
#include "lockstep/v1/shard_control.pb.h"

namespace lockstep::chief {

// Encode the calls that set a shard up, without the chief's identity, which the
// caller must add, and decode the answer.

v1::CreateShardRequest ToCreateRequest(const JobConfig& job, const Plan& plan,
                                       int server, ShardCalls::State state);

// Decodes the answer of a shard that is ready, for a job of `num_variables`.
// `takes_part`: the request had parts.
//
//   kInternal  the answer is of another number of variables
//   and the errors of FromProto() for settings and standings
absl::StatusOr<ShardCalls::Created> AnswerFrom(
    const v1::CreateShardResponse& response, size_t num_variables,
    bool takes_part);

v1::ActivateRequest ToActivateRequest(const ShardCalls::Opening& opening);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_SHARD_SETUP_CODEC_H_
