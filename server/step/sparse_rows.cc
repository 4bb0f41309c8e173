#include "server/step/sparse_rows.h"

#include <algorithm>
#include <numeric>

#include "server/step/element_math.h"

namespace lockstep::server {

SparseRows::SparseRows(const RowFormat& format,
                       absl::Span<const int64_t> indices,
                       absl::Span<const std::byte> values,
                       absl::Span<const int64_t> counts)
    : format_(format),
      indices_(indices.begin(), indices.end()),
      counts_(counts.begin(), counts.end()),
      values_(values.begin(), values.end()) {
  if (counts.empty()) counts_.resize(indices.size(), 1);
}

SparseRows::SparseRows(const RowFormat& format, size_t capacity)
    : format_(format) {
  indices_.reserve(capacity);
  counts_.reserve(capacity);
  values_.reserve(capacity * format.bytes());
}

void SparseRows::Append(const SparseRows& from, size_t row) {
  indices_.push_back(from.indices_[row]);
  counts_.push_back(from.counts_[row]);
  values_.insert(values_.end(), from.Row(row), from.Row(row + 1));
}

void SparseRows::AppendFrom(const SparseRows& from, size_t first_row) {
  const size_t end = from.indices_.size();
  indices_.insert(indices_.end(), from.indices_.data() + first_row,
                  from.indices_.data() + end);
  counts_.insert(counts_.end(), from.counts_.data() + first_row,
                 from.counts_.data() + end);
  values_.insert(values_.end(), from.Row(first_row), from.Row(end));
}

void SparseRows::AddToLast(const FlushSubnormals& mode, const SparseRows& from,
                           size_t row) {
  std::byte* last = values_.data() + (indices_.size() - 1) * format_.bytes();
  AddElements(mode, format_.dtype, format_.elements, from.Row(row), last);
}

SparseRows SparseRows::Canonical(const FlushSubnormals& mode) const {
  std::vector<size_t> order(indices_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Stable, so that equal rows are added in order of appearance: a
  // floating-point sum depends on it.
  std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return indices_[a] < indices_[b];
  });
  SparseRows result(format_, order.size());
  for (size_t row : order) {
    if (!result.indices_.empty() && result.indices_.back() == indices_[row]) {
      result.AddToLast(mode, *this, row);
    } else {
      result.Append(*this, row);
    }
  }
  return result;
}

SparseRows SparseRows::Merged(const FlushSubnormals& mode,
                              const SparseRows& other) const {
  SparseRows result(format_, indices_.size() + other.indices_.size());
  size_t mine = 0;
  size_t theirs = 0;
  while (mine < indices_.size() && theirs < other.indices_.size()) {
    if (other.indices_[theirs] < indices_[mine]) {
      result.Append(other, theirs++);
    } else if (indices_[mine] < other.indices_[theirs]) {
      result.Append(*this, mine++);
    } else {
      result.Append(*this, mine++);
      // The mean of a row divides by the number of gradients that have the row,
      // not by that of all gradients.
      result.counts_.back() += other.counts_[theirs];
      result.AddToLast(mode, other, theirs++);
    }
  }
  result.AppendFrom(*this, mine);
  result.AppendFrom(other, theirs);
  return result;
}

void SparseRows::DivideByCounts(const FlushSubnormals& mode) {
  for (size_t row = 0; row < counts_.size(); ++row) {
    DivideElements(mode, format_.dtype, format_.elements, counts_[row],
                   values_.data() + row * format_.bytes());
  }
}

}  // namespace lockstep::server
