#ifndef LOCKSTEP_COMMON_DTYPE_H_
#define LOCKSTEP_COMMON_DTYPE_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

namespace lockstep {

// DType is the element type of a tensor. Values are part of files and
// messages: never renumber.
enum class DType : int {
  kFloat16 = 1,
  kFloat32 = 2,
  kFloat64 = 3,
};

// Bytes per element.
size_t ElementSize(DType dtype);

// TensorFlow's name: "float16", "float32", "float64".
std::string_view DTypeName(DType dtype);

//   kInvalidArgument  not one of the three names
absl::StatusOr<DType> ParseDType(std::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DTYPE_H_
