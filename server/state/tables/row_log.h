#ifndef LOCKSTEP_SERVER_STATE_TABLES_ROW_LOG_H_
#define LOCKSTEP_SERVER_STATE_TABLES_ROW_LOG_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace lockstep::server {

// RowLog lists the rows of a table's part that the next step changes. It is a
// redo log, and gives a step of a table the guarantees of two buffers without a
// copy of the table:
//
//   update    the rows with gradients are copied, in the order of the log, to
//             the beginning of the part's second buffer, and updated there; the
//             table stays as it is, so that a step can be redone from it and
//             readers see the committed step
//   commit    the step record makes the step the committed one; then the rows
//             are copied to their places in the table
//   recovery  a process that was killed between these two leaves a log of the
//             committed step: the rows are copied once more, which changes
//             nothing where they have been copied before
//
// So a step costs as much as its rows, however large the table is. Its price is
// that rows are copied twice, and that the second buffer exists although few of
// its pages are used. An optimizer or a moving average that changes all rows in
// every step, such as Adam, has no use for a log: the second buffer is written
// as a whole.
//
// The log lies in the state file; its layout is part of that:
//   int64 step, int64 number of rows, then int64 row after row
//
// Threads: not thread-safe. A process killed inside any call leaves a log of no
//          step, or a whole one.
class RowLog {
 public:
  static constexpr int64_t kNone = -1;

  // Bytes of a log that can hold all `rows` of a part.
  static uint64_t Size(int64_t rows) { return 16 + 8 * uint64_t(rows); }

  // `memory` has Size() bytes of at least one row, at a multiple of 8.
  explicit RowLog(absl::Span<std::byte> memory)
      : head_(reinterpret_cast<int64_t*>(memory.data())),
        capacity_(memory.size() / sizeof(int64_t) - 2) {}

  // The step that the logged rows belong to; kNone: the log is not whole.
  int64_t step() const;

  // The logged rows, ascending; meaningless if step() is kNone.
  absl::Span<const int64_t> rows() const;

  // Begins a new log, which has no step before Finish(). `rows` must ascend and
  // be rows of the part.
  void Begin(absl::Span<const int64_t> rows);

  // Completes the log. The caller must have written the values of all its rows.
  void Finish(int64_t step);

  // Begins a log of a step that changes nothing.
  void Clear() { Begin({}); }

 private:
  int64_t* const head_;
  const uint64_t capacity_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_TABLES_ROW_LOG_H_
