#ifndef LOCKSTEP_COMMON_NUMERIC_DTYPE_H_
#define LOCKSTEP_COMMON_NUMERIC_DTYPE_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

namespace lockstep {

// DType is the element type of a tensor. Files and messages contain the values:
// never renumber.
enum class DType : int {
  kFloat16 = 1,
  kFloat32 = 2,
  kFloat64 = 3,
  kBFloat16 = 4,  // an extension: TensorFlow has no accumulator of this type
};

// Bytes per element.
size_t ElementSize(DType dtype);

// Returns TensorFlow's name: "float16", "float32", "float64", "bfloat16".
std::string_view DTypeName(DType dtype);

// Parses DTypeName().
//
//   kInvalidArgument  not one of the four names
absl::StatusOr<DType> ParseDType(std::string_view name);

// GradientType is the encoding of a gradient's elements on the wire.
enum class GradientType : int {
  kVariable = 0,  // the type of the variable
  kBFloat16 = 1,  // see common/numeric/bfloat16.h
};

// Returns the spelling of the job file: "VARIABLE", "BFLOAT16".
std::string_view GradientTypeName(GradientType type);

// Bytes per element of a gradient of a variable.
//
//   kInvalidArgument  kBFloat16 for a variable that is not float32
absl::StatusOr<size_t> GradientElementSize(DType dtype, GradientType type);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_DTYPE_H_
