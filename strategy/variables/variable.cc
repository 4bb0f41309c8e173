#include "strategy/variables/variable.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::strategy {

std::string Variable::CopyName(size_t copy) const {
  // TensorFlow's names of the copies of a mirrored variable.
  return copy == 0 ? name() : absl::StrCat(name(), "/replica_", copy);
}

std::function<absl::StatusOr<Value>()> Starting(Value value) {
  return [value = std::move(value)] { return value; };
}

}  // namespace lockstep::strategy
