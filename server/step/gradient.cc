#include "server/step/gradient.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace lockstep::server {
namespace {

std::string ToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::string_view Name(DType dtype) {
  const std::string_view name = DTypeName(dtype);
  return absl::string_view(name.data(), name.size());
}

// Nullopt if the product overflows. A dimension of 0 comes first: the product
// of the others may overflow although the tensor is empty.
std::optional<uint64_t> ByteSize(DType dtype, absl::Span<const int64_t> shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t bytes = ElementSize(dtype);
  for (int64_t dim : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

absl::Status CheckTensor(DType expected, DType dtype,
                         absl::Span<const int64_t> shape, size_t bytes) {
  if (dtype != expected || ElementSize(dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient dtype is ", Name(dtype), ", must be ",
                     Name(expected), ", that of the accumulator"));
  }
  // Before ByteSize(), which takes dimensions as unsigned.
  if (std::any_of(shape.begin(), shape.end(),
                  [](int64_t d) { return d < 0; })) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient shape ", ToString(shape), " has a negative dimension"));
  }
  if (ByteSize(dtype, shape) != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient values are ", bytes,
                     " bytes long, which is not the length "
                     "of shape ",
                     ToString(shape), " in ", Name(dtype)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCompatible(const PartialShape& declared,
                             absl::Span<const int64_t> shape) {
  if (!declared.has_value()) return absl::OkStatus();
  const bool compatible = std::equal(
      declared->begin(), declared->end(), shape.begin(), shape.end(),
      [](int64_t known, int64_t dim) { return known < 0 || known == dim; });
  if (compatible) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradient shape is ", ToString(shape),
                   ", must be compatible with the declared ",
                   ToString(*declared), " (-1 matches any length)"));
}

absl::Status CheckForm(DType dtype, const DenseGradientView& gradient) {
  return CheckTensor(dtype, gradient.dtype, gradient.shape,
                     gradient.values.size());
}

absl::Status CheckForm(DType dtype, const SparseGradientView& gradient) {
  return CheckTensor(dtype, gradient.dtype, gradient.values_shape,
                     gradient.values.size());
}

}  // namespace lockstep::server
