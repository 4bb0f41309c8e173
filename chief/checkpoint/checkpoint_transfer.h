#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TRANSFER_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TRANSFER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/servers/shard_access.h"
#include "chief/servers/state_map.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/format/safetensors_file.h"

namespace lockstep::chief {

// Called in the caller's thread with the number of bytes transferred so far and
// their total: first with 0, before the transfer. An error ends the transfer,
// which returns that error.
using OnTransferred = std::function<absl::Status(int64_t done, int64_t total)>;
// Returns a callback for a transfer that begins now. It calls `say` with `what`
// and the progress, e.g. "the checkpoint of step 8 to be restored, 40 %".
//
// Borrows: the clock.
OnTransferred WithProgress(std::string what, const Clock& clock,
                           std::function<absl::Status(const std::string&)> say);

// Writes the servers' snapshots, all of one step, as one checkpoint: whole
// variables, independent of the parts they were cut into. growing_tables.h
// says how growing tables are written. Returns CheckpointWriter::files().
//
//   kInvalidArgument  not as many scalars as the map names
//   and those of CheckpointStore and of ShardAccess. The store is as before.
absl::StatusOr<std::string> SaveCheckpoint(
    const CheckpointStore& store, const Manifest& manifest, const StateMap& map,
    const JobSnapshot& snapshot, const std::vector<ShardAccess*>& servers,
    const OnTransferred& on_transferred = {});

// Checks that the checkpoint holds all tensors of the map, then writes it to
// the servers, several blocks of a few MB at once. Returns the optimizer's
// scalars.
//
//   kFailedPrecondition  a variable is missing or has another shape or dtype,
//                        or is a growing table in only one of the two: names
//                        both. Or the checkpoint is of centered RMSProp, and
//                        the map of RMSProp. Nothing was written
//   kResourceExhausted   keys are distributed so that one part of a growing
//                        table is full before the table is
//   and the errors of CheckpointReader and of ShardAccess
absl::StatusOr<std::vector<float>> RestoreCheckpoint(
    const CheckpointReader& checkpoint, const StateMap& map,
    const std::vector<ShardAccess*>& servers,
    const OnTransferred& on_transferred = {});

// Copies the tensors in the snapshot of mirror `from` to the mirrors `to`,
// which must not be open. Does not copy the optimizer's scalars.
//
//   kInternal  the servers are no mirrors
//   and the errors of ShardAccess
absl::Status CopyState(const StateMap& map, ShardAccess& from,
                       const std::vector<ShardAccess*>& to,
                       const OnTransferred& on_transferred = {});

// Writes the variables that `values` holds to the servers, and the same values
// to their moving averages. Other variables, and all slots, stay as they are.
// Returns the number of variables written.
//
//   kFailedPrecondition  a tensor of the variable's name has another shape or
//                        dtype, or is a growing table: names both; nothing was
//                        written
//   and the errors of SafetensorsReader and of ShardAccess
absl::StatusOr<int> WriteInitialValues(
    const SafetensorsReader& values, const StateMap& map,
    const std::vector<ShardAccess*>& servers,
    const OnTransferred& on_transferred = {});

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TRANSFER_H_
