#include "server/shard/parts/row_gradients.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/numeric/bfloat16.h"
#include "server/step/flush_subnormals.h"
#include "server/step/sparse_rows.h"

namespace lockstep::server {
namespace {

RowFormat FormatOf(const PartSpec& part) {
  return {part.dtype, static_cast<size_t>(part.row_width)};
}

bool IsCanonical(const std::vector<int64_t>& indices) {
  return std::adjacent_find(indices.begin(), indices.end(),
                            std::greater_equal<>()) == indices.end();
}

absl::Status CheckCounts(int index, const GradientRows& rows) {
  if (rows.counts.empty()) return absl::OkStatus();
  if (rows.counts.size() != rows.indices.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient of part ", index, " has ", rows.counts.size(), " counts for ",
        rows.indices.size(), " rows; each row needs one"));
  }
  for (size_t i = 0; i < rows.counts.size(); ++i) {
    if (rows.counts[i] > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient of part ", index, ": the count of row ", rows.indices[i],
        " is ", rows.counts[i], "; it must be above 0"));
  }
  if (IsCanonical(rows.indices)) return absl::OkStatus();
  std::vector<int64_t> sorted = rows.indices;
  std::sort(sorted.begin(), sorted.end());
  const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated == sorted.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradient of part ", index, " names row ", *repeated,
                   " twice; rows with counts must be different"));
}

absl::Status CheckForm(int index, const PartSpec& part,
                       const PartGradient& gradient) {
  if (!gradient.rows.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient of part ", index, " names no rows; the part is a table of ",
        part.num_rows(), " rows, push those that it is of"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t element,
                            GradientElementSize(part.dtype, gradient.type));
  const GradientRows& rows = *gradient.rows;
  const auto count = static_cast<int64_t>(rows.indices.size());
  const std::vector<int64_t> shape = {count, part.row_width};
  const size_t size = TotalSize(gradient.slices);
  if (rows.shape != shape ||
      size != rows.indices.size() * part.row_width * element) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient of part ", index, " has ", count, " rows and ",
                     size, " bytes; each row needs ", part.row_width,
                     " elements of ", element, " bytes"));
  }
  return CheckCounts(index, rows);
}

// Converts bfloat16 elements to float32.
void Expand(PartGradient& gradient) {
  if (gradient.type != GradientType::kBFloat16) return;
  std::vector<std::byte> scratch;
  const absl::Span<const std::byte> packed = Contiguous(gradient, scratch);
  auto floats =
      std::make_shared<std::vector<float>>(packed.size() / kBFloat16Size);
  ExpandBFloat16(floats->size(), packed.data(), floats->data());
  gradient.slices = {{reinterpret_cast<const std::byte*>(floats->data()),
                      floats->size() * sizeof(float)}};
  gradient.owner = std::move(floats);
  gradient.type = GradientType::kVariable;
}

}  // namespace

absl::Status CheckRows(int index, const PartSpec& part,
                       absl::Span<const int64_t> rows) {
  for (const int64_t row : rows) {
    if (row >= 0 && row < part.num_rows()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("part ", index, ": row is ", row,
                     ", must be at least 0 and less than ", part.num_rows()));
  }
  return absl::OkStatus();
}

absl::Status MakeCanonical(int index, const PartSpec& part,
                           PartGradient& gradient) {
  LOCKSTEP_RETURN_IF_ERROR(CheckForm(index, part, gradient));
  std::vector<int64_t>& indices = gradient.rows->indices;
  LOCKSTEP_RETURN_IF_ERROR(CheckRows(index, part, indices));
  Expand(gradient);
  // The usual case: workers send rows sorted, and nothing is copied.
  if (IsCanonical(indices)) return absl::OkStatus();
  std::vector<std::byte> scratch;
  const FlushSubnormals mode;
  auto rows = std::make_shared<SparseRows>(
      SparseRows(FormatOf(part), indices, Contiguous(gradient, scratch),
                 gradient.rows->counts)
          .Canonical(mode));
  indices = rows->indices();
  if (!gradient.rows->counts.empty()) gradient.rows->counts = rows->counts();
  // Repeated rows were added up, so there may be fewer.
  gradient.rows->shape[0] = static_cast<int64_t>(indices.size());
  gradient.slices = {{rows->values().data(), rows->values().size()}};
  gradient.owner = std::move(rows);
  return absl::OkStatus();
}

SparseGradient MeanOfRows(const PartSpec& part,
                          absl::Span<const PartGradient> gradients,
                          absl::Span<const int> merges) {
  const FlushSubnormals mode;
  std::vector<std::byte> scratch;
  std::vector<SparseRows> sums;  // a stack; the last one is on top
  for (size_t i = 0; i < gradients.size(); ++i) {
    const PartGradient& gradient = gradients[i];
    sums.emplace_back(FormatOf(part), gradient.rows->indices,
                      Contiguous(gradient, scratch), gradient.rows->counts);
    const int in_order = i == 0 ? 0 : 1;
    for (int left = merges.empty() ? in_order : merges[i]; left > 0; --left) {
      const SparseRows right = std::move(sums.back());
      sums.pop_back();
      sums.back() = sums.back().Merged(mode, right);
    }
  }
  SparseRows& sum = sums.front();
  sum.DivideByCounts(mode);
  SparseGradient mean;
  mean.dtype = part.dtype;
  mean.values_shape = {static_cast<int64_t>(sum.indices().size()),
                       part.row_width};
  mean.indices = std::move(sum.indices());
  mean.values = std::move(sum.values());
  return mean;
}

}  // namespace lockstep::server
