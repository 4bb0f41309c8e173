#include "common/numeric/dtype.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

size_t ElementSize(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat32:
      return 4;
    case DType::kFloat64:
      return 8;
  }
  return 0;
}

std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return "float16";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kBFloat16:
      return "bfloat16";
  }
  return "invalid";
}

absl::StatusOr<DType> ParseDType(std::string_view name) {
  for (DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("dtype \"", absl::string_view(name.data(), name.size()),
                   "\" is not one of float16, float32, float64, bfloat16"));
}

std::string_view GradientTypeName(GradientType type) {
  switch (type) {
    case GradientType::kVariable:
      return "VARIABLE";
    case GradientType::kBFloat16:
      return "BFLOAT16";
  }
  return "invalid";
}

absl::StatusOr<size_t> GradientElementSize(DType dtype, GradientType type) {
  if (type == GradientType::kVariable) return ElementSize(dtype);
  if (type == GradientType::kBFloat16 && dtype == DType::kFloat32) return 2;
  return absl::InvalidArgumentError(
      absl::StrCat("gradient type ", std::string(GradientTypeName(type)),
                   " is not for a ", std::string(DTypeName(dtype)),
                   " variable; BFLOAT16 is for float32, VARIABLE for all"));
}

}  // namespace lockstep
