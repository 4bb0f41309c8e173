#include "strategy/copy.h"

#include "absl/strings/str_cat.h"

namespace lockstep::strategy {

size_t Place::CopyOf(const Variable& variable) const {
  return engine_.variables().CopyOfReplica(variable, index_);
}

absl::StatusOr<Value> Place::Read(const Variable& variable) const {
  if (!engine_.variables().Owns(variable)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name(), "\" is another strategy's"));
  }
  return engine_.variables().ReadCopy(variable, CopyOf(variable));
}

absl::Status Place::Assign(const Variable& variable, const Value& value) {
  return engine_.variables().Write(variable, CopyOf(variable),
                                   Assignment::kAssign, value);
}

absl::Status Place::AssignAdd(const Variable& variable, const Value& value) {
  return engine_.variables().Write(variable, CopyOf(variable), Assignment::kAdd,
                                   value);
}

absl::Status Place::AssignSub(const Variable& variable, const Value& value) {
  return engine_.variables().Write(variable, CopyOf(variable),
                                   Assignment::kSubtract, value);
}

absl::Span<std::byte> Place::MutableBytes(const Variable& variable) {
  return engine_.variables().MutableBytes(variable, CopyOf(variable));
}

}  // namespace lockstep::strategy
