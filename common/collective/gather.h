#ifndef LOCKSTEP_COMMON_COLLECTIVE_GATHER_H_
#define LOCKSTEP_COMMON_COLLECTIVE_GATHER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/value.h"

namespace lockstep {

// Joins the values along an axis, in their order. They may have different sizes
// along that axis only.
//
//   kInvalidArgument  types, ranks or other dimensions differ; `axis` is not in
//                     [0, rank); too many elements along it; as Value::Check()
absl::StatusOr<Value> Gather(absl::Span<const Value> values, int64_t axis);

// Returns the tensor of the whole shape, with the rows of `slices` added at
// their indices and zeros elsewhere.
//
//   kInvalidArgument  the shape of the whole is unknown, an index is not in it,
//                     or rows do not fit it; as Value::Check() and
//                     CheckIsNumber()
absl::StatusOr<Value> ToDense(const Slices& slices);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_GATHER_H_
