#include "server/step/compatible/sparse_accumulator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::server {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

absl::Status CheckStructure(const SparseGradientView& gradient) {
  if (gradient.indices_rank != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient indices have rank ", gradient.indices_rank, ", must be 1"));
  }
  if (gradient.values_shape.empty()) {
    return absl::InvalidArgumentError(
        "gradient values have rank 0, must be at least 1");
  }
  const auto num_rows = static_cast<uint64_t>(gradient.values_shape[0]);
  if (num_rows != gradient.indices.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient values have ", num_rows, " rows, must be ",
                     gradient.indices.size(), ", one per index"));
  }
  return absl::OkStatus();
}

// A negative `expected` accepts every length.
absl::Status CheckDim(absl::string_view what, size_t dim, int64_t expected,
                      int64_t actual) {
  if (expected < 0 || expected == actual) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradient ", what, ": dimension ", dim, " is ", actual,
                   ", must be ", expected));
}

absl::Status CheckRankAtLeast(absl::string_view what, size_t expected,
                              size_t actual) {
  if (actual >= expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("gradient ", what,
                                                 ": rank must be at least ",
                                                 expected, ", got ", actual));
}

// The first index that must not occur.
int64_t IndexLimit(absl::Span<const int64_t> shape) {
  return shape.empty() || shape[0] < 0 ? kNoLimit : shape[0];
}

RowFormat FormatOf(const SparseGradientView& gradient) {
  const size_t num_rows = gradient.indices.size();
  const size_t bytes_per_row =
      num_rows == 0 ? 0 : gradient.values.size() / num_rows;
  return {gradient.dtype, bytes_per_row / ElementSize(gradient.dtype)};
}

}  // namespace

SparseSum::SparseSum(const Options& options)
    : options_(options),
      declared_(options.shape.value_or(std::vector<int64_t>{})) {}

absl::Status SparseSum::Check(const View& gradient, int64_t count) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckStructure(gradient));
  LOCKSTEP_RETURN_IF_ERROR(CheckSuppliedShape(gradient));
  LOCKSTEP_RETURN_IF_ERROR(CheckIndices(gradient));
  return CheckRowShape(gradient, count);
}

absl::Status SparseSum::CheckSuppliedShape(const View& gradient) const {
  if (!gradient.dense_shape.has_value()) return absl::OkStatus();
  const absl::Span<const int64_t> shape = *gradient.dense_shape;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRankAtLeast("dense_shape", declared_.size(), shape.size()));
  // Dimensions beyond the declared rank are free, as in TensorFlow.
  for (size_t i = 0; i < declared_.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckDim("dense_shape", i, declared_[i], shape[i]));
  }
  return absl::OkStatus();
}

absl::Status SparseSum::CheckIndices(const View& gradient) const {
  const bool canonical = options_.input == SparseInput::kCanonical;
  int64_t limit = IndexLimit(declared_);
  if (canonical && gradient.dense_shape.has_value()) {
    limit = std::min(limit, IndexLimit(*gradient.dense_shape));
  }
  // As sent: only a declared upper bound is checked, as in TensorFlow.
  const int64_t least = canonical ? 0 : std::numeric_limits<int64_t>::min();
  for (int64_t index : gradient.indices) {
    if (index < least || (limit != kNoLimit && index >= limit)) {
      return absl::InvalidArgumentError(
          absl::StrCat("gradient index is ", index,
                       ", must be at least 0 and less than ", limit));
    }
  }
  return absl::OkStatus();
}

absl::Status SparseSum::CheckRowShape(const View& gradient,
                                      int64_t count) const {
  const std::vector<int64_t>& expected = count > 0 ? values_shape_ : declared_;
  const absl::Span<const int64_t> shape = gradient.values_shape;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRankAtLeast("values", expected.size(), shape.size()));
  if (count > 0 && shape.size() != expected.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient values: rank is ", shape.size(), ", must be ",
                     expected.size(), ", as in the sum of this step"));
  }
  // From 1: dimension 0 of the values is the number of rows.
  for (size_t i = 1; i < expected.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckDim("values", i, expected[i], shape[i]));
  }
  return absl::OkStatus();
}

void SparseSum::Add(const View& gradient, int64_t count) {
  const FlushSubnormals mode;
  SparseRows rows(FormatOf(gradient), gradient.indices, gradient.values);
  if (options_.input == SparseInput::kCanonical) rows = rows.Canonical(mode);
  if (count == 0) {
    values_shape_.assign(gradient.values_shape.begin(),
                         gradient.values_shape.end());
    rows_ = std::move(rows);
  } else if (!gradient.indices.empty()) {
    rows_ =
        rows_.indices().empty() ? std::move(rows) : rows_.Merged(mode, rows);
  }
}

SparseGradient SparseSum::HandOut(int64_t /*count*/) {
  const FlushSubnormals mode;
  if (options_.reduction == Reduction::kMean) rows_.DivideByCounts(mode);
  SparseGradient gradient;
  gradient.dtype = options_.dtype;
  gradient.values_shape = std::exchange(values_shape_, {});
  gradient.values_shape[0] = static_cast<int64_t>(rows_.indices().size());
  gradient.dense_shape = gradient.values_shape;
  // The number of rows of the whole, which a declaration may leave open.
  gradient.dense_shape[0] =
      declared_.empty() ? -1 : std::max<int64_t>(declared_[0], -1);
  gradient.indices = std::move(rows_.indices());
  gradient.values = std::move(rows_.values());
  rows_ = SparseRows();
  return gradient;
}

}  // namespace lockstep::server
