#include "common/checkpoint/format/tensor_type.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/text/excerpt.h"

namespace lockstep {

namespace {

struct TypeRow {
  TensorType type;
  absl::string_view name;
  size_t size;  // bytes
};

constexpr TypeRow kTypes[] = {
    {TensorType::kF16, "F16", 2},        {TensorType::kBF16, "BF16", 2},
    {TensorType::kF32, "F32", 4},        {TensorType::kF64, "F64", 8},
    {TensorType::kI64, "I64", 8},        {TensorType::kBool, "BOOL", 1},
    {TensorType::kU8, "U8", 1},          {TensorType::kI8, "I8", 1},
    {TensorType::kF8E4M3, "F8_E4M3", 1}, {TensorType::kF8E5M2, "F8_E5M2", 1},
    {TensorType::kI16, "I16", 2},        {TensorType::kU16, "U16", 2},
    {TensorType::kI32, "I32", 4},        {TensorType::kU32, "U32", 4},
    {TensorType::kU64, "U64", 8},
};

// Null: no such type.
const TypeRow* RowOf(TensorType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

size_t TensorTypeSize(TensorType type) {
  const TypeRow* row = RowOf(type);
  return row == nullptr ? 0 : row->size;
}

absl::string_view TensorTypeName(TensorType type) {
  const TypeRow* row = RowOf(type);
  return row == nullptr ? "invalid" : row->name;
}

bool IsReadable(TensorType type) { return type <= TensorType::kI64; }

absl::StatusOr<TensorType> ParseTensorType(absl::string_view name) {
  std::string names;
  for (const TypeRow& row : kTypes) {
    if (name == row.name) return row.type;
    absl::StrAppend(&names, names.empty() ? "" : ", ", row.name);
  }
  // The name comes from a file, so its length is not bounded.
  return absl::InvalidArgumentError(
      absl::StrCat("dtype ", Excerpt(name, 32), " is not one of ", names));
}

TensorType ToTensorType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return TensorType::kF16;
    case DType::kFloat32:
      return TensorType::kF32;
    case DType::kFloat64:
      return TensorType::kF64;
    case DType::kBFloat16:
      return TensorType::kBF16;
  }
  return TensorType::kF32;
}

}  // namespace lockstep
