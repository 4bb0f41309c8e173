#ifndef LOCKSTEP_STRATEGY_VARIABLES_SCATTER_H_
#define LOCKSTEP_STRATEGY_VARIABLES_SCATTER_H_

#include "absl/status/status.h"
#include "common/collective/value.h"

namespace lockstep::strategy {

enum class ScatterOp {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMin,
  kMax,
  kUpdate,
};

// OK if ApplyScatter() accepts the rows. Errors: as ApplyScatter().
absl::Status CheckRows(ScatterOp op, const Slices& slices, const Value& target);

// Applies the rows of `slices` to the rows of `target` at their indices, one
// after the other; each operation rounds once.
//
//   kInvalidArgument  the type or the shape of the rows is not the target's, or
//                     an index is not in it; as Value::Check(), and except for
//                     kUpdate as CheckIsNumber(); the target has not changed
//   kUnimplemented    kMin and kMax of bfloat16
absl::Status ApplyScatter(ScatterOp op, const Slices& slices, Value& target);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VARIABLES_SCATTER_H_
