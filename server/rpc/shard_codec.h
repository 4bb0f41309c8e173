#ifndef LOCKSTEP_SERVER_RPC_SHARD_CODEC_H_
#define LOCKSTEP_SERVER_RPC_SHARD_CODEC_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "common/plan/variable_spec.h"
#include "lockstep/v1/shard_control.pb.h"
#include "server/shard/chief_commands.h"
#include "server/shard/shard.h"

namespace lockstep::server {

// The share of a model that a chief wants a server to hold.
struct ShardDescription {
  JobConfig job;
  std::vector<VariableSpec> variables;  // of the whole model
  std::vector<PartSpec> parts;          // of this server
};

// Reads the description in a chief's request.
//
//   kInvalidArgument  a job that ValidateJobConfig() refuses or whose replicas
//                     are not filled in, or a variable or a part that no plan
//                     can have
absl::StatusOr<ShardDescription> ToDescription(
    const v1::CreateShardRequest& request);

ChiefCommands::TakeOrder TakeOrderFrom(const v1::TakeAndApplyRequest& request);

// Encodes the description of an existing shard: its parts, step and state.
v1::CreateShardResponse Describe(Shard& shard);

// Encodes the progress. `progress` may be null: nothing has begun.
void FillWorking(const FillProgress* progress, v1::Working& working);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_SHARD_CODEC_H_
