#include "worker/blocks/row_block_sum.h"

#include <utility>

#include "common/plan/number_tree.h"
#include "server/step/flush_subnormals.h"

namespace lockstep::worker {
namespace {

server::SparseRows RowsOf(DType dtype, const TableRows& rows) {
  const size_t row_size =
      rows.ids.empty() ? 0 : rows.gradients.size() / rows.ids.size();
  return {{dtype, row_size / ElementSize(dtype)}, rows.ids, rows.gradients};
}

}  // namespace

std::optional<RowSum> RowBlockSum::Add(int index, int count, DType dtype,
                                       const TableRows& rows, bool absent) {
  const server::FlushSubnormals mode;
  stack_.emplace_back();
  if (!absent) stack_.back() = RowsOf(dtype, rows);
  for (int merges = MergesAfter(index, count); merges > 0; --merges) {
    const std::optional<server::SparseRows> right = std::move(stack_.back());
    stack_.pop_back();
    std::optional<server::SparseRows>& left = stack_.back();
    if (!right.has_value()) continue;
    // A gradient without rows does not tell how wide they are, so that the sum
    // must not have its format.
    const bool has_rows = left.has_value() && !left->indices().empty();
    left = has_rows ? left->Merged(mode, *right) : *right;
  }
  if (index + 1 < count || !stack_.front().has_value()) return std::nullopt;
  server::SparseRows& sum = *stack_.front();
  return RowSum{std::move(sum.indices()), std::move(sum.values()),
                std::move(sum.counts())};
}

}  // namespace lockstep::worker
