#include "common/plan/variable_spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/fingerprint.h"

namespace lockstep {
namespace {

std::string FirstValues(const Initializer& initializer) {
  const double a = initializer.a;
  const double b = initializer.b;
  switch (initializer.kind) {
    case Initializer::Kind::kConstant:
      return absl::StrCat("all ", a);
    case Initializer::Kind::kUniform:
      return absl::StrCat("uniform(", a, ", ", b, ")");
    case Initializer::Kind::kNormal:
      return absl::StrCat("normal(", a, ", ", b, ")");
    case Initializer::Kind::kGlorotUniform:
      return "glorot_uniform";
    case Initializer::Kind::kHeNormal:
      return "he_normal";
    case Initializer::Kind::kTruncatedNormal:
      return absl::StrCat("truncated_normal(", a, ", ", b, ")");
    case Initializer::Kind::kGlorotNormal:
      return "glorot_normal";
    case Initializer::Kind::kHeUniform:
      return "he_uniform";
    case Initializer::Kind::kOrthogonal:
      return absl::StrCat("orthogonal(", a, ")");
    case Initializer::Kind::kGiven:
      return "first values of a worker";
  }
  return absl::StrCat("initializer ", static_cast<int>(initializer.kind));
}

absl::string_view TableWords(RowCut cut) {
  switch (cut) {
    case RowCut::kNone:
      return "";
    case RowCut::kDiv:
      return ", a table of consecutive rows";
    case RowCut::kMod:
      return ", a table";
    case RowCut::kKey:
      return ", a growing table";
  }
  return ", a table of an unknown kind";
}

}  // namespace

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

std::string VariableString(const VariableSpec& variable) {
  return absl::StrCat(
      "\"", variable.name, "\" ", std::string(DTypeName(variable.dtype)), " ",
      ShapeString(variable.shape), ", ", FirstValues(variable.initializer),
      TableWords(variable.row_cut), variable.buffer ? ", a buffer" : "");
}

}  // namespace lockstep
