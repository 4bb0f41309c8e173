#ifndef LOCKSTEP_STRATEGY_GRADIENTS_H_
#define LOCKSTEP_STRATEGY_GRADIENTS_H_

#include <string>

#include "absl/status/status.h"
#include "common/collective/value.h"
#include "strategy/variables/variable.h"

// Gradients that a program hands in.
namespace lockstep::strategy {

// OK if the gradient has the variable's type and shape, or is rows of such a
// tensor.
//
//   kInvalidArgument  names the variable, and what the gradient is; as
//                     CheckLeaf()
absl::Status CheckGradient(const Leaf& gradient, const Variable& variable);

// Multiplies the gradient of the variable `name` by `factor`, a scalar.
//
//   kInvalidArgument  `factor` is no scalar, or has another type than the
//                     gradient, which then has not changed; as CheckLeaf()
absl::Status MultiplyBy(const Value& factor, const std::string& name,
                        Leaf& gradient);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_GRADIENTS_H_
