#ifndef LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_TYPE_H_
#define LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numeric/dtype.h"

namespace lockstep {

// The type of the elements that a collective operation combines. The first four
// have the numbers of DType. Messages contain the values: never renumber.
enum class ElementType : int {
  kFloat16 = 1,
  kFloat32 = 2,
  kFloat64 = 3,
  kBFloat16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kBool = 7,  // bytes of 0 or 1, as uint8_t
  kInt8 = 8,
  kUint8 = 9,
  kInt16 = 10,
  kUint16 = 11,
  kUint32 = 12,
  kUint64 = 13,
};

// True if a type has this number, which may come from another process.
bool IsElementType(int64_t number);

// Bytes per element.
size_t SizeOf(ElementType type);

// TensorFlow's name: "float16", "int64".
std::string_view NameOf(ElementType type);

// True for the types of DType.
bool IsFloatingPoint(ElementType type);

// True for the signed and unsigned integers, but not for kBool.
bool IsInteger(ElementType type);

// Calls `visit` with a zero of the C++ type of `type`, and returns what it
// returns. Must be called only if IsInteger().
template <typename Visit>
auto VisitInteger(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::kInt8:
      return visit(int8_t{});
    case ElementType::kUint8:
      return visit(uint8_t{});
    case ElementType::kInt16:
      return visit(int16_t{});
    case ElementType::kUint16:
      return visit(uint16_t{});
    case ElementType::kInt32:
      return visit(int32_t{});
    case ElementType::kUint32:
      return visit(uint32_t{});
    case ElementType::kUint64:
      return visit(uint64_t{});
    default:
      return visit(int64_t{});
  }
}

// OK if the type can be added, multiplied and divided. All other uses, such as
// gathers and broadcasts, take every type.
//
//   kInvalidArgument  kBool; names it and the fix
absl::Status CheckIsNumber(ElementType type);

ElementType ElementTypeOf(DType dtype);

// Parses NameOf().
//
//   kInvalidArgument  not one of these names; has all of them
absl::StatusOr<ElementType> ParseElementType(std::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_TYPE_H_
