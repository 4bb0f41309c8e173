#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_TENSOR_TYPE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_TENSOR_TYPE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/numeric/dtype.h"

namespace lockstep {

// TensorType is the element type of a stored tensor. The types up to kI64 are
// those of variables, and integers for counters such as the global step. Files
// of other programs may have tensors of the others, too, which are not read.
enum class TensorType {
  kF16,
  kBF16,
  kF32,
  kF64,
  kI64,
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kI16,
  kU16,
  kI32,
  kU32,
  kU64,
};

// Bytes per element.
size_t TensorTypeSize(TensorType type);

// The safetensors spelling, such as "F16" or "F8_E4M3".
absl::string_view TensorTypeName(TensorType type);

// True for the types of variables and of counters.
bool IsReadable(TensorType type);

// Parses TensorTypeName().
//
//   kInvalidArgument  not the name of a TensorType
absl::StatusOr<TensorType> ParseTensorType(absl::string_view name);

TensorType ToTensorType(DType dtype);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_TENSOR_TYPE_H_
