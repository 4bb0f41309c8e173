#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_TENSOR_TYPE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_TENSOR_TYPE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/numeric/dtype.h"

namespace lockstep {

// TensorType is the element type of a stored tensor: the types of variables,
// and integers for counters such as the global step.
enum class TensorType { kF16, kBF16, kF32, kF64, kI64 };

// Bytes per element.
size_t TensorTypeSize(TensorType type);

// The safetensors spelling: "F16", "BF16", "F32", "F64", "I64".
absl::string_view TensorTypeName(TensorType type);

// Parses TensorTypeName().
//
//   kInvalidArgument  not one of the five names
absl::StatusOr<TensorType> ParseTensorType(absl::string_view name);

TensorType ToTensorType(DType dtype);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_TENSOR_TYPE_H_
