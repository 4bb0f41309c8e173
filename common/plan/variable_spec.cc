#include "common/plan/variable_spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/fingerprint.h"

namespace lockstep {

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

int64_t RowWidth(const std::vector<int64_t>& shape) {
  return NumElements({shape.begin() + 1, shape.end()});
}

bool IsPartOf(const VariableSpec& variable, const Part& part) {
  const int64_t offset = part.offset;
  const int64_t count = part.count;
  const int64_t stride = part.row_stride;
  const int64_t elements = NumElements(variable.shape);
  if (offset < 0 || count < 1 || stride < 1 || offset >= elements) return false;
  if (!variable.is_table()) return stride == 1 && count <= elements - offset;
  const int64_t width = RowWidth(variable.shape);
  // Only whole rows can be in a part of a table.
  if (offset % width != 0 || count % width != 0) return false;
  if (stride > 1 && variable.row_cut == RowCut::kDiv) return false;
  // Divides instead of multiplying by the stride, which comes from a peer and
  // could overflow.
  const int64_t rows_after = (elements - offset) / width - 1;
  return count / width - 1 <= rows_after / stride;
}

int64_t PartOfKey(int64_t key, int64_t num_parts) {
  // Mixed first: keys are often multiples of a number, which would leave
  // servers empty.
  return static_cast<int64_t>(MixBits(static_cast<uint64_t>(key)) %
                              static_cast<uint64_t>(num_parts));
}

std::string ShapeString(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

}  // namespace lockstep
