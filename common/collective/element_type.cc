#include "common/collective/element_type.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

struct Row {
  ElementType type;
  std::string_view name;
  size_t size;
  bool is_integer = false;
};

constexpr std::array<Row, 13> kRows = {{
    {ElementType::kFloat16, "float16", 2},
    {ElementType::kFloat32, "float32", 4},
    {ElementType::kFloat64, "float64", 8},
    {ElementType::kBFloat16, "bfloat16", 2},
    {ElementType::kInt32, "int32", 4, true},
    {ElementType::kInt64, "int64", 8, true},
    {ElementType::kBool, "bool", 1},
    {ElementType::kInt8, "int8", 1, true},
    {ElementType::kUint8, "uint8", 1, true},
    {ElementType::kInt16, "int16", 2, true},
    {ElementType::kUint16, "uint16", 2, true},
    {ElementType::kUint32, "uint32", 4, true},
    {ElementType::kUint64, "uint64", 8, true},
}};

const Row& RowOf(ElementType type) {
  // The types are numbered from 1 without gaps.
  return kRows[static_cast<size_t>(type) - 1];
}

}  // namespace

bool IsElementType(int64_t number) {
  return number >= 1 && number <= static_cast<int64_t>(kRows.size());
}

size_t SizeOf(ElementType type) { return RowOf(type).size; }

std::string_view NameOf(ElementType type) { return RowOf(type).name; }

bool IsFloatingPoint(ElementType type) {
  return type <= ElementType::kBFloat16;
}

bool IsInteger(ElementType type) { return RowOf(type).is_integer; }

absl::Status CheckIsNumber(ElementType type) {
  if (type != ElementType::kBool) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "bool cannot be added, multiplied or divided; use int32 or float32, or "
      "gather the values");
}

ElementType ElementTypeOf(DType dtype) {
  // The numbers are the same.
  return static_cast<ElementType>(static_cast<int>(dtype));
}

absl::StatusOr<ElementType> ParseElementType(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  std::string names;
  for (const Row& row : kRows) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(row.name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(name),
                   "\" is no element type; it must be one of ", names));
}

}  // namespace lockstep
