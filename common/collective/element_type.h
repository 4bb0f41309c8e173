#ifndef LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_TYPE_H_
#define LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_TYPE_H_

#include <cstddef>
#include <string_view>

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
};

// Bytes per element.
size_t SizeOf(ElementType type);

// TensorFlow's name: "float16", "int64".
std::string_view NameOf(ElementType type);

bool IsInteger(ElementType type);

ElementType ElementTypeOf(DType dtype);

// Parses NameOf().
//
//   kInvalidArgument  not one of the six names
absl::StatusOr<ElementType> ParseElementType(std::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_TYPE_H_
