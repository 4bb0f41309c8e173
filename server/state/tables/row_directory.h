#ifndef LOCKSTEP_SERVER_STATE_TABLES_ROW_DIRECTORY_H_
#define LOCKSTEP_SERVER_STATE_TABLES_ROW_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep::server {

// RowDirectory maps the keys of a growing table's part to its rows. Rows are
// given out one after the other and never taken back:
//
//   free -> Add(key): fresh, has its initial values -> Keep(): steps changed it
//
// A fresh row is as good as none, since the next call with its key gets the
// same values. So a row that a killed process left fresh does no harm, and a
// checkpoint holds only the other rows: the committed steps decide which rows
// these are, and reads do not.
//
// A list in the state file outlives the process; its layout is part of the
// file's:
//   int64 number of rows given out, then for each row int64 its key, or, while
//   the row is fresh, the complement of its key
// The index from keys to rows is in the process's own memory, some 20 bytes per
// row, and is rebuilt from the list when the file is opened. An index in the
// file would have to be whole at any instant, and the list is read as fast.
//
// Threads: not thread-safe. A process that is killed inside Add() leaves the
//          list with the row or without it; one that is killed inside Keep()
//          leaves the row kept or fresh.
class RowDirectory {
 public:
  // Bytes of the list of a part of `rows` rows.
  static uint64_t Size(int64_t rows) { return 8 + 8 * uint64_t(rows); }

  // `memory` must have Size() bytes at a multiple of 8: zeros, or the list of
  // an earlier process.
  //
  //   kDataLoss  a count or a key that no directory writes; says which
  static absl::StatusOr<std::unique_ptr<RowDirectory>> Open(
      absl::Span<std::byte> memory);

  int64_t capacity() const { return capacity_; }
  // Rows given out, which is also the row that Add() gives next.
  int64_t size() const { return words_[0]; }

  // Returns the row of a key; nothing if the key has none.
  std::optional<int64_t> Find(int64_t key) const;
  // The key of a row that was given out.
  int64_t KeyAt(int64_t row) const;

  // Gives the next row to a key, which must be at least 0 and have no row;
  // size() must be below capacity(). The caller must have written the row's
  // values before.
  void Add(int64_t key);

  // Records that a committed step has changed the row. Repeating it changes
  // nothing. No effect for a row that was not given out.
  void Keep(int64_t row);

  // The keys and rows that are kept, ascending by key.
  std::vector<std::pair<int64_t, int64_t>> Kept() const;

  // Removes all rows. Must not be called once a step was committed.
  void Clear();

 private:
  explicit RowDirectory(absl::Span<std::byte> memory)
      : words_(reinterpret_cast<int64_t*>(memory.data())),
        capacity_(static_cast<int64_t>(memory.size() / sizeof(int64_t)) - 1) {}
  absl::Status ReadList();

  int64_t* const words_;
  const int64_t capacity_;
  absl::flat_hash_map<int64_t, int64_t> rows_;  // by key
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_TABLES_ROW_DIRECTORY_H_
