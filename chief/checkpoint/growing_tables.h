#ifndef LOCKSTEP_CHIEF_CHECKPOINT_GROWING_TABLES_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_GROWING_TABLES_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/servers/shard_access.h"
#include "chief/servers/state_map.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_writer.h"

// The transfer of growing tables between servers and checkpoints. A checkpoint
// holds the rows that steps have changed, ascending by key: "<table>" and its
// slots, and as many int64 "<table>/keys". All other rows have their initial
// values.
//
// The chief keeps the keys of one table in memory while it writes that table, 8
// bytes per row.
namespace lockstep::chief {

// Returns the number of rows of a table in the snapshots.
//
//   kInternal  a server has not reported the number for one of its parts
absl::StatusOr<int64_t> CountRows(const StateMap& map, size_t variable,
                                  const JobSnapshot& snapshot);

// The bytes of `rows` rows of a table: keys, values and slots.
int64_t BytesOfRows(const StateMap& map, size_t variable, int64_t rows);

// Called with the bytes of each block of rows that was transferred. An error
// ends the transfer, which returns that error.
using OnRows = absl::FunctionRef<absl::Status(int64_t bytes)>;

// Writes keys, values and slots of a table.
//
//   those of CheckpointWriter, of ShardAccess and of `on_rows`
absl::Status SaveGrowingTable(const StateMap& map, size_t variable,
                              const JobSnapshot& snapshot,
                              const std::vector<ShardAccess*>& servers,
                              CheckpointWriter& writer, OnRows on_rows);

// Reads a key of one of the tables, if any has rows. Errors as CountRows() and
// ShardAccess.
absl::Status ReadAnyKey(const StateMap& map, const JobSnapshot& snapshot,
                        const std::vector<ShardAccess*>& servers);

// Checks that the checkpoint has the growing table `variable` of `map`.
//
//   kFailedPrecondition  it has none, or one of other rows, slots or types, or
//                        more rows than the table may have: names both
absl::Status CheckGrowingTable(const CheckpointReader& checkpoint,
                               const StateMap& map, size_t variable);

// The number of rows of a table that CheckGrowingTable() has accepted. Errors
// as CheckpointReader::FileOf().
absl::StatusOr<int64_t> StoredRows(const CheckpointReader& checkpoint,
                                   const StateMap& map, size_t variable);

// Writes a table that CheckGrowingTable() has accepted to the servers.
//
//   kDataLoss  keys that are negative or do not ascend
//   and those of CheckpointReader, of ShardAccess and of `on_rows`
absl::Status RestoreGrowingTable(const CheckpointReader& checkpoint,
                                 const StateMap& map, size_t variable,
                                 const std::vector<ShardAccess*>& servers,
                                 OnRows on_rows);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_GROWING_TABLES_H_
