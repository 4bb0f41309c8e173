#ifndef LOCKSTEP_SERVER_STEP_SPARSE_ROWS_H_
#define LOCKSTEP_SERVER_STEP_SPARSE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/numeric/dtype.h"
#include "server/step/flush_subnormals.h"

namespace lockstep::server {

// The width of a row.
struct RowFormat {
  DType dtype = DType::kFloat32;
  size_t elements = 0;

  size_t bytes() const { return elements * ElementSize(dtype); }
};

// SparseRows is a list of rows, each with its index and the number of gradients
// that were added up in it. An index may occur several times.
//
// Threads: not thread-safe.
class SparseRows {
 public:
  SparseRows() = default;

  // Copies rows. `values` must hold a row of `format` per index; `counts` the
  // number of gradients in each row, or nothing: one each.
  SparseRows(const RowFormat& format, absl::Span<const int64_t> indices,
             absl::Span<const std::byte> values,
             absl::Span<const int64_t> counts = {});

  // Returns the rows in ascending order of index, with rows of equal index
  // added in order of appearance. The count of a row is that of its first
  // appearance: rows of one gradient that are added still count as one.
  SparseRows Canonical(const FlushSubnormals& mode) const;

  // TensorFlow's merge: one pass over both lists that treats them as ascending.
  // If the heads have equal indices, the rows and their counts are added; else
  // the row with the smaller index comes first. Lists that do not ascend
  // therefore leave rows of equal index side by side. Both lists must have one
  // format.
  SparseRows Merged(const FlushSubnormals& mode, const SparseRows& other) const;

  // Divides each row by its count.
  void DivideByCounts(const FlushSubnormals& mode);

  const std::vector<int64_t>& indices() const { return indices_; }
  std::vector<int64_t>& indices() { return indices_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  std::vector<int64_t>& counts() { return counts_; }
  std::vector<std::byte>& values() { return values_; }

 private:
  SparseRows(const RowFormat& format, size_t capacity);

  const std::byte* Row(size_t row) const {
    return values_.data() + row * format_.bytes();
  }
  void Append(const SparseRows& from, size_t row);
  void AppendFrom(const SparseRows& from, size_t first_row);
  void AddToLast(const FlushSubnormals& mode, const SparseRows& from,
                 size_t row);

  RowFormat format_;
  std::vector<int64_t> indices_;
  std::vector<int64_t> counts_;
  std::vector<std::byte> values_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_SPARSE_ROWS_H_
