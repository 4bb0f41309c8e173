#include "common/checkpoint/format/tensor_type.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

size_t TensorTypeSize(TensorType type) {
  switch (type) {
    case TensorType::kF16:
    case TensorType::kBF16:
      return 2;
    case TensorType::kF32:
      return 4;
    case TensorType::kF64:
    case TensorType::kI64:
      return 8;
  }
  return 0;
}

absl::string_view TensorTypeName(TensorType type) {
  switch (type) {
    case TensorType::kF16:
      return "F16";
    case TensorType::kBF16:
      return "BF16";
    case TensorType::kF32:
      return "F32";
    case TensorType::kF64:
      return "F64";
    case TensorType::kI64:
      return "I64";
  }
  return "invalid";
}

absl::StatusOr<TensorType> ParseTensorType(absl::string_view name) {
  for (TensorType type : {TensorType::kF16, TensorType::kBF16, TensorType::kF32,
                          TensorType::kF64, TensorType::kI64}) {
    if (name == TensorTypeName(type)) return type;
  }
  // The name comes from a file, so its length is not bounded.
  return absl::InvalidArgumentError(
      absl::StrCat("dtype \"", name.substr(0, 32),
                   "\" is not one of F16, BF16, F32, F64, I64"));
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
