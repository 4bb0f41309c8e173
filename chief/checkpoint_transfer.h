#ifndef LOCKSTEP_CHIEF_CHECKPOINT_TRANSFER_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_TRANSFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/shard_access.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/plan.h"

namespace lockstep {

// StateMap says what the state of a job consists of and where it is.
struct StateMap {
  Plan plan;
  // By variable, what is kept beside it: names after its own.
  std::vector<std::vector<std::string>> slots;
  std::vector<std::string> scalars;  // of the optimizers
};

// Writes the servers' snapshots, all of one step, as one checkpoint: whole
// variables, whatever parts they were cut into.
//
// `scalars` holds the values for StateMap::scalars.
//
//   kInvalidArgument  not as many scalars as the map names
//   and those of CheckpointStore and of ShardAccess. The store is as before.
absl::Status SaveCheckpoint(const CheckpointStore& store,
                            const Manifest& manifest, const StateMap& map,
                            const std::vector<float>& scalars,
                            const std::vector<ShardAccess*>& servers);

// Checks that the checkpoint holds what the map names, then writes it to the
// servers. Returns the optimizer's scalars.
//
//   kFailedPrecondition  a variable is missing or has another shape or dtype:
//                        names both; nothing was written
//   and those of CheckpointReader and of ShardAccess
absl::StatusOr<std::vector<float>> RestoreCheckpoint(
    const CheckpointReader& checkpoint, const StateMap& map,
    const std::vector<ShardAccess*>& servers);

}  // namespace lockstep

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_TRANSFER_H_
