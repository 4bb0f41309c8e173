#include "chief/checkpoint/finite_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr size_t kBlockBytes = size_t{4} << 20;

// Elements with all bits of the exponent set are NaN or infinite.
template <typename Bits>
std::optional<size_t> FirstWithAll(Bits exponent,
                                   absl::Span<const char> bytes) {
  for (size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    Bits bits;
    std::memcpy(&bits, &bytes[i * sizeof(Bits)], sizeof(Bits));
    if ((bits & exponent) == exponent) return i;
  }
  return std::nullopt;
}

absl::Status CheckVariable(const SafetensorsReader& values,
                           const VariableSpec& variable,
                           std::vector<char>& block,
                           const OnTransferred& on_transferred) {
  const size_t element = ElementSize(variable.dtype);
  const size_t size =
      static_cast<size_t>(NumElements(variable.shape)) * element;
  for (size_t at = 0; at < size; at += block.size()) {
    block.resize(std::min(kBlockBytes, size - at));
    LOCKSTEP_RETURN_IF_ERROR(
        values.ReadAt(variable.name, at, absl::MakeSpan(block)));
    const std::optional<size_t> found = FirstNonFinite(variable.dtype, block);
    if (found.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(
          values.path(), " has NaN or an infinity in \"", variable.name,
          "\", first in element ", at / element + *found,
          " of its values one after the other; name a file with finite values, "
          "or leave the variable out of it"));
    }
    if (!on_transferred) continue;
    LOCKSTEP_RETURN_IF_ERROR(on_transferred(0, static_cast<int64_t>(size)));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<size_t> FirstNonFinite(DType dtype,
                                     absl::Span<const char> little_endian) {
  switch (dtype) {
    case DType::kFloat16:
      return FirstWithAll<uint16_t>(0x7c00, little_endian);
    case DType::kBFloat16:
      return FirstWithAll<uint16_t>(0x7f80, little_endian);
    case DType::kFloat32:
      return FirstWithAll<uint32_t>(0x7f800000, little_endian);
    case DType::kFloat64:
      return FirstWithAll<uint64_t>(0x7ff0000000000000, little_endian);
  }
  return std::nullopt;
}

absl::Status CheckFinite(const SafetensorsReader& values,
                         const std::vector<VariableSpec>& variables,
                         const OnTransferred& on_transferred) {
  std::vector<char> block;
  for (const VariableSpec& variable : variables) {
    const StoredTensor* stored = values.Find(variable.name);
    if (stored == nullptr || variable.buffer || variable.grows() ||
        stored->type != ToTensorType(variable.dtype) ||
        stored->shape != variable.shape) {
      continue;
    }
    LOCKSTEP_RETURN_IF_ERROR(
        CheckVariable(values, variable, block, on_transferred));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
