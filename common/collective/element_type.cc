#include "common/collective/element_type.h"

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

struct Row {
  ElementType type;
  std::string_view name;
  size_t size;
};

constexpr std::array<Row, 6> kRows = {{
    {ElementType::kFloat16, "float16", 2},
    {ElementType::kFloat32, "float32", 4},
    {ElementType::kFloat64, "float64", 8},
    {ElementType::kBFloat16, "bfloat16", 2},
    {ElementType::kInt32, "int32", 4},
    {ElementType::kInt64, "int64", 8},
}};

const Row& RowOf(ElementType type) {
  // The types are numbered from 1 without gaps.
  return kRows[static_cast<size_t>(type) - 1];
}

}  // namespace

size_t SizeOf(ElementType type) { return RowOf(type).size; }

std::string_view NameOf(ElementType type) { return RowOf(type).name; }

bool IsInteger(ElementType type) {
  return type == ElementType::kInt32 || type == ElementType::kInt64;
}

ElementType ElementTypeOf(DType dtype) {
  // The numbers are the same.
  return static_cast<ElementType>(static_cast<int>(dtype));
}

absl::StatusOr<ElementType> ParseElementType(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(name),
                   "\" is no element type; it must be float16, float32, "
                   "float64, bfloat16, int32 or int64"));
}

}  // namespace lockstep
