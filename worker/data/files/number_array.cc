#include "worker/data/files/number_array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/numeric/float16.h"

namespace lockstep::worker {
namespace {

// Elements are copied without a conversion, as the files have them.
static_assert(std::endian::native == std::endian::little);

// Calls visit(index, element) for each element, with the element's own type,
// until it returns false.
template <typename T, typename Visit>
bool VisitAs(const NumberArray& array, Visit visit) {
  const size_t count = array.bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    // Copied, because the bytes of a file need not be aligned for T.
    T element;
    std::memcpy(&element, array.bytes.data() + i * sizeof(T), sizeof(T));
    if (!visit(i, element)) return false;
  }
  return true;
}

template <typename Visit>
bool VisitElements(const NumberArray& array, Visit visit) {
  switch (array.type) {
    case NumberType::kBool:
    case NumberType::kUint8:
      return VisitAs<uint8_t>(array, visit);
    case NumberType::kInt8:
      return VisitAs<int8_t>(array, visit);
    case NumberType::kUint16:
      return VisitAs<uint16_t>(array, visit);
    case NumberType::kInt16:
      return VisitAs<int16_t>(array, visit);
    case NumberType::kUint32:
      return VisitAs<uint32_t>(array, visit);
    case NumberType::kInt32:
      return VisitAs<int32_t>(array, visit);
    case NumberType::kUint64:
      return VisitAs<uint64_t>(array, visit);
    case NumberType::kInt64:
      return VisitAs<int64_t>(array, visit);
    case NumberType::kFloat16:
      return VisitAs<Float16>(array, [&visit](size_t i, Float16 element) {
        return visit(i, ToFloat(element));
      });
    case NumberType::kFloat32:
      return VisitAs<float>(array, visit);
    case NumberType::kFloat64:
      return VisitAs<double>(array, visit);
  }
  return true;
}

// 2^63: the smallest double above all int64 numbers.
constexpr double kTooLarge = 9223372036854775808.0;

template <typename T>
bool ToWhole(T element, int64_t& whole) {
  if constexpr (std::is_floating_point_v<T>) {
    const double wide = element;
    // Negated, so that NaN is refused.
    if (!(wide >= -kTooLarge && wide < kTooLarge) || wide != std::floor(wide)) {
      return false;
    }
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (element > uint64_t{std::numeric_limits<int64_t>::max()}) return false;
  }
  whole = static_cast<int64_t>(element);
  return true;
}

}  // namespace

size_t SizeOf(NumberType type) {
  switch (type) {
    case NumberType::kBool:
    case NumberType::kUint8:
    case NumberType::kInt8:
      return 1;
    case NumberType::kUint16:
    case NumberType::kInt16:
    case NumberType::kFloat16:
      return 2;
    case NumberType::kUint32:
    case NumberType::kInt32:
    case NumberType::kFloat32:
      return 4;
    case NumberType::kUint64:
    case NumberType::kInt64:
    case NumberType::kFloat64:
      return 8;
  }
  return 1;
}

const char* NameOf(NumberType type) {
  switch (type) {
    case NumberType::kBool:
      return "bool";
    case NumberType::kUint8:
      return "uint8";
    case NumberType::kInt8:
      return "int8";
    case NumberType::kUint16:
      return "uint16";
    case NumberType::kInt16:
      return "int16";
    case NumberType::kUint32:
      return "uint32";
    case NumberType::kInt32:
      return "int32";
    case NumberType::kUint64:
      return "uint64";
    case NumberType::kInt64:
      return "int64";
    case NumberType::kFloat16:
      return "float16";
    case NumberType::kFloat32:
      return "float32";
    case NumberType::kFloat64:
      return "float64";
  }
  return "";
}

int64_t NumberArray::count() const {
  return static_cast<int64_t>(bytes.size() / SizeOf(type));
}

std::string ShapeText(const std::vector<int64_t>& dimensions) {
  return absl::StrJoin(dimensions, " x ");
}

absl::StatusOr<std::vector<float>> ToFloats(const NumberArray& array) {
  std::vector<float> floats;
  floats.reserve(static_cast<size_t>(array.count()));
  const bool all = VisitElements(array, [&floats](size_t, auto element) {
    // A double above the largest float becomes infinite and is refused here.
    floats.push_back(static_cast<float>(element));
    return std::isfinite(floats.back());
  });
  if (all) return floats;
  return absl::InvalidArgumentError(
      absl::StrCat("element ", floats.size() - 1, " is ", floats.back(),
                   " as float32; give finite numbers, for instance with "
                   "numpy.nan_to_num"));
}

absl::StatusOr<std::vector<int64_t>> ToWholeNumbers(const NumberArray& array) {
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(array.count()));
  std::string wrong;
  VisitElements(array, [&numbers, &wrong](size_t i, auto element) {
    int64_t whole = 0;
    if (ToWhole(element, whole)) {
      numbers.push_back(whole);
      return true;
    }
    wrong = absl::StrCat("element ", i, " is ", element,
                         "; give whole numbers below 2^63");
    return false;
  });
  if (wrong.empty()) return numbers;
  return absl::InvalidArgumentError(wrong);
}

}  // namespace lockstep::worker
