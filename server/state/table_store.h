#ifndef LOCKSTEP_SERVER_STATE_TABLE_STORE_H_
#define LOCKSTEP_SERVER_STATE_TABLE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/state/state_tensors.h"
#include "server/state/tables/row_directory.h"
#include "server/state/tables/row_log.h"

namespace lockstep::server {

// TableStore writes the parts that are tables, row by row.
//
// A logged part has one buffer of its tensors, and a RowLog in place of the
// other: BeginRows() prepares the memory of the next rows, and ApplyLogs()
// copies them into the table after the commit. A part that grows also has a
// RowDirectory: MakeRows() gives rows to keys, and a row that ApplyLogs() has
// copied counts as kept.
//
// Threads: as VariableStore.
// Units:   spans count bytes.
// Errors:  a call that fails has changed nothing.
// Borrows: the tensors.
class TableStore {
 public:
  explicit TableStore(StateTensors& tensors) : tensors_(tensors) {}
  TableStore(const TableStore&) = delete;
  TableStore& operator=(const TableStore&) = delete;

  // Reads the directories of the parts that grow. Must be called first.
  absl::Status Open();

  // Copies rows of a logged part to the beginning of Next(), one after the
  // other in the order given. The caller must update them there and then call
  // FinishRows(). Both calls read the step record.
  //
  // `rows` must ascend and be rows of the part.
  void BeginRows(size_t part, absl::Span<const int64_t> rows);
  void FinishRows(size_t part);

  // Records that the next step changes no row of a logged part.
  void SkipRows(size_t part);
  // Copies the rows of logs that lead to the committed step into their tables.
  // No call may read or write tables meanwhile. Repeating it changes nothing.
  void ApplyLogs();

  // Returns the rows of keys of a part that grows, in the order given.
  //
  //   kInvalidArgument  a key has no row
  absl::StatusOr<std::vector<int64_t>> FindRows(
      size_t part, absl::Span<const int64_t> keys) const;
  // As FindRows(); creates a row with initial values for keys that have none.
  // No other call may use the part meanwhile.
  //
  //   kInvalidArgument    a negative key, or one of another part
  //   kResourceExhausted  no room for the new rows: names the table and its
  //                       limit
  absl::StatusOr<std::vector<int64_t>> MakeRows(size_t part,
                                                absl::Span<const int64_t> keys,
                                                uint64_t seed);
  // Returns the keys and rows that committed steps have changed, ascending by
  // key.
  std::vector<std::pair<int64_t, int64_t>> KeptRows(size_t part) const {
    return directories_[part]->Kept();
  }
  // Returns the places in `rows` in the order of the rows' keys. The order of
  // the rows themselves is that of their first reads, which is chance. The part
  // must grow and have the rows.
  std::vector<size_t> PlacesByKey(size_t part,
                                  absl::Span<const int64_t> rows) const;
  // Overwrites rows of a tensor of a part that grows, before Activate(). Keys
  // without a row get one. From here on checkpoints hold the rows.
  //
  //   the errors of VariableStore::WriteStretch() and of MakeRows()
  absl::Status WriteRows(size_t part, size_t tensor,
                         absl::Span<const int64_t> keys, uint64_t seed,
                         absl::Span<const std::byte> bytes);

  // Removes all rows of a part if it grows. Returns false if it does not.
  bool Clear(size_t part);

 private:
  RowLog Log(size_t part) const;
  absl::Status CheckKeys(size_t part, absl::Span<const int64_t> keys) const;
  // Returns the keys that have no row, each once. Fails if there is no room for
  // them.
  absl::StatusOr<std::vector<int64_t>> NewKeys(
      size_t part, absl::Span<const int64_t> keys) const;

  StateTensors& tensors_;
  // By part; null: it does not grow.
  std::vector<std::unique_ptr<RowDirectory>> directories_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_TABLE_STORE_H_
